"""`python -m verydeep` is the `verydeep` command."""

import sys

from verydeep.cli import main

if __name__ == "__main__":
    sys.exit(main())
