"""The interactive page about a trained network, which computes everything itself."""
