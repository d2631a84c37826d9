"""The page about Figures 2, 3 and 4."""

from figures import RESULTS, page, read_records


def test_the_page_is_what_the_records_say() -> None:
    """If it is not: python benchmarks/figures.py --page."""
    assert (RESULTS / "README.md").read_text() == page(read_records())
