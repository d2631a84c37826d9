"""The experiments, a file each; `claims/_experiments.py` lists them in the order of the paper.

A file has the statements that it tests, what is trained or measured for them, and the rule of each verdict. `_variants`
is what `_init` and `_activation` share, and `_inside_search` trains the networks that `_inside` examines.
"""
