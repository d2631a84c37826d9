"""Where the trials of a study are kept: a journal file by default, or a PostgreSQL server for many machines.

Both offer the `Store` interface, a thin layer over Optuna's storages: studies and claims go in, trials come out.
`_dead_workers` detects workers that died and releases their trials: through file locks with a journal file, and
heartbeats with a server.
"""
