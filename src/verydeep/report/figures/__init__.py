"""Figures for print and screen, drawn with matplotlib: one `plot_X(result, path, theme)` per kind of result.

Each function takes a result of `verydeep.analysis`, a search or a training and draws it without computing anything new.
It writes a PNG, SVG or PDF and returns matplotlib's figure. `_theme` has the colours, `_axes` shared parts.
"""
