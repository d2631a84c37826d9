"""Runs on disk: their folder, checkpoints and metadata, and the list of all runs below a folder.

Training writes into a run's folder through `Run` and `RunState`; evaluation, analysis, reports and the command line
read it through `Run`, `RunData` and `list_runs`. Every file is either complete or absent.
"""
