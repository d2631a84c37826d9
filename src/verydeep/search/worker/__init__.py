"""Workers train the trials of a study, one after the other, each in a process with one thread.

`_worker` is the loop that claims and trains trials, `_trial` trains a single one as an ordinary run, `_pool` starts
and watches the worker processes of one machine, and `_main` is what such a process runs. A study goes in; results go to
its storage, and runs to its folder.
"""
