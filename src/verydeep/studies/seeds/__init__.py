"""One configuration trained with several seeds: a study with one group.

`train_seeds` takes a configuration and a number of seeds, and returns a `Seeds` folder with one run per seed and a
summary over them; `resume_seeds` continues it. `_seeds` is the folder, `_train_seeds` makes it a study and trains it.
"""
