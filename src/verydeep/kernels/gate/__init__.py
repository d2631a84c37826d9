"""Kernels for the highway operation: everything in a layer that follows its affine maps.

`_gate_loops` has the loops, `_gate_op` the torch operators. The pre-activations of H, T and C and the carried x go in;
the layer's output or its gradients come out.
"""
