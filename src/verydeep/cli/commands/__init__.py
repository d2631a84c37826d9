"""The commands of `verydeep`: one file per command, imported only when that command is called.

Each has a `main(arguments)` that takes the arguments after the command's name and returns an exit code, or None for 0.
Options are dataclasses filled by `verydeep.cli._options`; longer terminal output is in `verydeep.cli.views`.
"""
