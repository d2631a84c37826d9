"""Pictures of results: what is drawn is computed before, and only drawn here."""

from verydeep.report._bench import plot_bench
from verydeep.report._confusion import plot_confusion
from verydeep.report._curves import plot_curves

__all__ = ["plot_bench", "plot_confusion", "plot_curves"]
