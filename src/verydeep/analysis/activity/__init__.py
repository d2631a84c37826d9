"""What the layers of a trained network do: gates and block outputs, routing by class, and how signals flow.

Results are gathered in one pass over the samples (`_observations`), and each kind has a file of its own.
"""
