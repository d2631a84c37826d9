"""Figures for print and screen, drawn with matplotlib: one `plot_X(result, path=None, *, theme)` per kind of result.

Each function takes a result of `verydeep.analysis`, a search or a training and draws it without computing anything new.
It returns matplotlib's figure, and writes it as PNG, SVG or PDF if it gets a path.
`_theme` has the colours, `_axes` shared parts.
"""
