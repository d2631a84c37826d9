"""What a trained network is worth.

`_evaluate` measures its loss and score on a split, `_estimates` the metrics of its task with intervals (by
`_bootstrap`), and `_predict` predicts new rows.
"""
