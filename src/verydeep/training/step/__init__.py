"""The parts of one training step: loss, learning rate, optimiser, weight average, random numbers, several processes.

`Trainer` puts them together. They take the configuration, a batch and the position in training (epoch and batch), and
update gradients, weights and the optimiser's state.
"""
