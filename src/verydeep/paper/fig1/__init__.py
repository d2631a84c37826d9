"""Figure 1 of the paper: a random search over plain and highway networks of 10 to 100 layers on MNIST.

`_protocol` defines the networks, the search space and the training lengths; `_study` trains a study of them and records
every trial through `_results`; `_halving` says how much is left. From the recorded trials `_summary`, `_claims`,
`_influence` and `_gate_bias` compute the numbers, and `_page` writes them as Markdown.
"""
