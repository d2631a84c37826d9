"""The statements of the paper's text, each with the experiment that tests it.

`_experiment` says what an experiment is: its statements, its trainings, and functions that turn curves into numbers
and numbers into verdicts. Every experiment has a file in `experiments/`, and `_experiments` lists them. `_study` trains
them as one study and records every training through `_results`; a search that decides what is trained next, such as
`_inside_search`, has a study of its own. `_page` writes docs/claims.md and the list of rules.
"""
