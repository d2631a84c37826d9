"""What people see of a training.

The summary at its start, bars or lines in a terminal, a table in a notebook, and events for TensorBoard.
"""
