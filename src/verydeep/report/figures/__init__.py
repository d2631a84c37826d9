"""Figures for paper and screen, drawn by matplotlib: one `plot_X(result, path, theme)` per result.

A function takes a result of `verydeep.analysis`, a search or a training and draws it without computing anything new.
It writes a PNG, SVG or PDF and returns matplotlib's figure; `_theme` holds the colours, `_axes` what plots share.
"""
