"""Datasets as tensors: the paper's image sets and the user's own."""

from verydeep.data._dataset import Dataset, Split

__all__ = ["Dataset", "Split"]
