"""Kernels for stacks of fully connected layers, alone or between an input layer and a classifier.

`_stack_loops`, `_input_layer_loops` and `_classifier_loops` define the loops, `_stack_plan` divides a batch among
threads, `_stack_call` and `_outer_layers_call` turn one batch into kernel calls, `_stack_op` wraps these as torch
operators. Samples and parameters go in;
outputs, gradients or the states of all layers come out.
"""
