"""Workers train the trainings of a study, one after another.

`_worker` is the loop that claims and trains, `_training` trains a single one as an ordinary run, `_pool` starts and
watches the worker processes of one machine, and `__main__` is what such a process runs. A study goes in; results go to
its storage, and runs to its folder.
"""
