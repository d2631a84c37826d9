"""What helps a recipe of a tenth of the epochs: `python benchmarks/fast_recipe.py mnist cifar10 --epochs 6 --seeds 3`.

Trains variations of a base recipe, one change each, on part of the training set and evaluates them on the rest of it.
Scores are kept in results/fast-recipe/; an interrupted study continues. docs/fast-recipe.md is written from the scores;
`--minutes 0` only writes that page.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from recipe_study import STUDIES, StudyRunner, recipe_page

from verydeep.errors import UserError, unknown
from verydeep.files import write_atomic
from verydeep.training import interruptible

ROOT = Path(__file__).parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="|".join(STUDIES), help="by default, all")
    parser.add_argument("--epochs", type=int, default=6, help="number of epochs of each run (6)")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds (2)")
    parser.add_argument("--only", help="names of variations, separated by commas; by default, all")
    parser.add_argument("--minutes", type=float, help="stop after this many minutes")
    parser.add_argument("--jobs", type=int, default=2, help="number of workers, each with one thread (2)")
    parser.add_argument("--root", type=Path, help="folder of the known datasets")
    parser.add_argument("--quick", action="store_true", help="train on the digits, into runs/fast-recipe-quick")
    options = parser.parse_args()
    results = ROOT / ("runs/fast-recipe-quick" if options.quick else "results/fast-recipe")
    runs = ROOT / "runs" / ("fast-recipe-quick" if options.quick else "fast-recipe")
    page = results / "fast-recipe.md" if options.quick else ROOT / "docs" / "fast-recipe.md"
    ends = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    with interruptible() as interrupt:
        for name in options.studies or STUDIES:
            if name not in STUDIES:
                raise unknown("study", name, STUDIES)
            study = STUDIES[name]
            variations = study.selected(options.only)
            runner = StudyRunner(
                study, variations, options.epochs, options.seeds, results, runs, options.jobs, options.quick
            )
            seconds = None if ends is None else ends - time.monotonic()
            if (seconds is None or seconds > 0) and not interrupt.requested:
                runner.train(options.root, seconds, partial(print, flush=True))
            write_atomic(page, recipe_page(results))
    print(f"{page} is written")
    return 130 if interrupt.requested else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"fast_recipe: {error}")
