"""How grey images are drawn: light or dark ink, how large, and where its centre of mass is."""

from typing import Any

import numpy as np


def describe_ink(pixels: np.ndarray, black: float, white: float) -> dict[str, Any]:
    """Measure grey images, so that a drawing can be placed as they are (in MNIST: 20 of 28 pixels, centred by mass).

    Args:
        pixels: Images, `(n, 1, height, width)`.
        black: The lowest value.
        white: The highest value.
    """
    share = (pixels[:, 0].astype(np.float64) - black) / max(white - black, 1e-12)
    edges = [share[:, :1].ravel(), share[:, -1:].ravel(), share[:, :, :1].ravel(), share[:, :, -1:].ravel()]
    dark = bool(np.median(np.concatenate(edges)) > 0.5)
    ink = 1 - share if dark else share
    _, height, width = ink.shape
    sizes, centres = [], []
    for image in ink:
        rows, columns = np.flatnonzero((image > 0.2).any(1)), np.flatnonzero((image > 0.2).any(0))
        if len(rows) == 0:
            continue
        sizes.append(max((rows[-1] - rows[0] + 1) / height, (columns[-1] - columns[0] + 1) / width))
        down, across = np.arange(height) + 0.5, np.arange(width) + 0.5
        total = image.sum()
        centres.append([image.sum(1) @ down / total / height, image.sum(0) @ across / total / width])
    if not sizes:
        return {"dark": dark, "size": 0.7, "centre": [0.5, 0.5]}
    return {"dark": dark, "size": float(np.median(sizes)), "centre": np.mean(centres, axis=0).tolist()}
