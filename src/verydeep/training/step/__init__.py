"""The parts of one training step: loss, learning rate, optimiser, weight average, random numbers, several processes.

`Trainer` puts them together. They take the configuration and the position in training (epoch and batch), and change
nothing but the model, its gradients and the optimiser's state.
"""
