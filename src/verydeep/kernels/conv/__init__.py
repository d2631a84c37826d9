"""Kernels for convolutional highway layers with 3x3 receptive fields.

`_winograd` has the transforms that make 3x3 convolutions cheap, `_conv_loops` the loops of a whole layer, `_conv_call`
the kernel calls for one batch, `_conv_op` the torch operators. Images and filters go in; the layer's output or its
gradients come out.
"""
