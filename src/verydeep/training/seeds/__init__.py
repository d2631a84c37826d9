"""One configuration trained with several seeds, each in its own process.

`train_seeds` takes a configuration and a number of seeds, and returns a `Seeds` folder with one run per seed and a
summary over them. `_train_seeds` starts and watches the processes, `_seed_worker` is what each of them runs.
"""
