"""Networks with fewer layers: exactly what is left when closed layers are taken out.

`_prune` chooses the layers and removes them, `_remove_layers` from our own networks, and `_remove_blocks` from those of
others.
"""
