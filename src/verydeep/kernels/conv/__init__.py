"""Kernels for convolutional layers.

`_conv_loops` has the loops of a whole layer. They are made of a `_lowering`, which turns a convolution into matrix
products (`_tiles` with the transforms of `_winograd`, or `_patches`), and an `_epilogue`, what follows the convolution.
`_filters` prepares the weights, with the loops of `_filter_loops`; `_conv_call` has the kernel calls for one batch, and
`_conv_op` is what torch calls. `_planned` is a layer prepared for inference on few images. Images and filters go in;
the layer's output or its gradients come out.
"""
