"""Whether the fused kernels can run: all rules, for the highway operation, convolutions, stacks and whole networks.

Everything that kernels compute is also written in torch's operations, in the layer or network that asks here. Those
operations define what is right and run wherever a rule says no.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.module import _has_any_global_hook
from torch.utils._python_dispatch import _get_current_dispatch_mode

from verydeep.errors import UserError, unknown

Backend = Literal["auto", "fused", "reference"]
BACKENDS = ("auto", "fused", "reference")
Activations = Sequence[Callable[[Tensor], Tensor]]  # that of the block state, then those of gates

FEWEST_CHANNELS = 8  # of x for Winograd's tiles: their transforms cost as much for one channel as for a register
_LEAST_FOR_GATE = 2**15  # size of a layer's output above which the kernels of the highway operation pay off
_LEAST_FOR_CONV = 2**12  # the same for convolutional layers
_MOST_PLANNED = 16  # images for which a plan is worth its memory


def check_backend(backend: str) -> None:
    """Refuse an unknown backend."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


def can_run_gate(
    backend: Backend, activations: Activations, x_hat: Tensor, *others: Tensor, with_maps: bool = False
) -> bool:
    """Whether a layer's highway operation runs in kernels; with "auto", only if its output is large enough.

    This size is smaller where kernels compute the affine maps, too.
    """
    possible = _can_run(backend, activations, x_hat, *others)
    least = _LEAST_FOR_CONV if with_maps else _LEAST_FOR_GATE
    return possible and (backend == "fused" or x_hat.numel() >= least)  # last: symbolic in an export


def can_run_conv(kernel_size: int, x: Tensor, x_hat: Tensor) -> bool:
    """Whether a highway layer that passes `can_run_gate` runs in kernels entirely, its convolution included."""
    return kernel_size in (1, 3, 5) and x_hat is x and x.dim() == 4


def can_run_plain_conv(backend: Backend, conv: nn.Module, pieces: int, x: Tensor) -> bool:
    """Whether a plain convolution and the rectifier or maxout after it run in kernels together.

    With "auto" the output must be large enough, and the kernels faster than torch's operations: with stride 1, and
    either a receptive field of 1x1, 3x3 or 5x5, or few channels of x.
    """
    if backend == "reference" or type(conv) is not nn.Conv2d or conv.bias is None or x.dim() != 4:
        return False
    side = conv.kernel_size[0]
    if not _is_square(conv) or x.shape[1] != conv.in_channels or (side == 1 and conv.padding != (0, 0)):
        return False
    if conv.out_channels % pieces or min(x.shape[2:]) + 2 * int(conv.padding[0]) < side:
        return False
    if not _can_run(backend, (torch.relu,), x, conv.weight, conv.bias):
        return False
    if backend == "fused":
        return True
    pays_off = conv.in_channels < FEWEST_CHANNELS or side in (1, 3, 5)
    size = len(x) * conv.out_channels * x.shape[2] * x.shape[3]
    return pays_off and conv.stride == (1, 1) and size >= _LEAST_FOR_CONV


def can_run_dropout(backend: Backend, layer: nn.Dropout, x: Tensor) -> bool:
    """Whether dropout runs in kernels: of a tensor without gaps, with a probability other than 0 and 1."""
    usual = backend != "reference" and type(layer) is nn.Dropout and not layer.inplace and 0 < layer.p < 1
    return usual and _are_plain(x) and (x.is_contiguous() or _has_channels_last(x))


def can_run_max_pool(backend: Backend, side: int, x: Tensor) -> bool:
    """Whether max pooling runs in kernels: of images that hold at least one window and have their channels last."""
    usual = backend != "reference" and x.dim() == 4 and min(x.shape[2:]) >= side
    return usual and _are_plain(x) and _has_channels_last(x)


def can_plan_inference(backend: Backend, x: Tensor) -> bool:
    """Whether a network that is in evaluation mode may run from a plan: with few images and without gradients."""
    few = not torch.is_grad_enabled() and x.dim() == 4 and len(x) <= _MOST_PLANNED
    return few and backend != "reference" and _are_plain(x)


def can_plan_conv(activations: Activations, *convs: nn.Module) -> bool:
    """Whether the convolutions of a layer have kernels that suit few images."""
    return _is_known(activations) and all(map(_is_planned, convs))


def prefers_channels_last(backend: Backend, x: Tensor) -> bool:
    """Whether the layers of a network around x run in kernels, which keep the channels last."""
    return backend != "reference" and x.dim() == 4 and _are_plain(x)


def can_run_stack(backend: Backend, activations: Activations, x: Tensor, *parameters: Tensor) -> bool:
    """Whether a stack of fully connected layers runs in kernels."""
    return _can_run(backend, activations, x, *parameters, autocast=multiplies_bfloat16())


def multiplies_bfloat16() -> bool:
    """Whether stacks of fully connected layers multiply in bfloat16.

    They do so inside of torch's autocast to bfloat16, on processors with instructions for it.
    """
    inside = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return inside and has_bfloat16()


def has_bfloat16() -> bool:
    """Whether this processor has instructions for products in bfloat16 that the kernels use."""
    from verydeep.kernels.ir._processor import BFLOAT16

    return BFLOAT16


def can_run_mlp(
    backend: Backend, activations: Activations, x: Tensor, input: nn.Module, stack: nn.Module, classifier: nn.Module
) -> bool:
    """Whether an input layer, a stack and a classifier run in kernels together; x is `(batch, input)`.

    Kernels compute no gradient of x, and call no hooks of the modules.
    """
    if backend == "reference" or not (type(input) is type(classifier) is nn.Linear):
        return False
    if input.bias is None or classifier.bias is None:
        return False
    weight, bias = stack.weight, stack.bias
    assert isinstance(weight, Tensor)
    assert isinstance(bias, Tensor)
    outer = input.weight, input.bias, classifier.weight, classifier.bias
    return (
        _is_known(activations)
        and _are_plain(x, weight, bias, *outer, autocast=multiplies_bfloat16())
        and x.dim() == 2
        and x.shape[1] == input.in_features
        and input.out_features == classifier.in_features == weight.shape[-1]
        and not x.requires_grad
        and not has_hooks(input, stack, classifier)
    )


def can_run_layers(activations: Activations, x: Tensor, *layers: nn.Module) -> bool:
    """Whether one or two linear layers, with an activation between them, can be trained in kernels.

    x is `(batch, input)`.
    """
    if not all(type(layer) is nn.Linear and layer.bias is not None for layer in layers) or has_hooks(*layers):
        return False
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    known = not activations or _is_known(activations)
    return known and _are_plain(x, *parameters, autocast=multiplies_bfloat16()) and x.dim() == 2


def can_set_gradients(parameters: Sequence[Tensor]) -> bool:
    """Whether gradients may be assigned to `.grad`: nothing to accumulate, no hooks, nothing frozen or tied."""
    distinct = len(set(map(id, parameters))) == len(parameters)
    return torch.is_grad_enabled() and distinct and all(map(_takes_gradient, parameters))


def has_hooks(*modules: nn.Module) -> bool:
    """Whether calling one of the modules does more than its class says, because of hooks of all modules or its own."""
    return _has_any_global_hook() or any(map(has_own_hooks, modules))


def has_own_hooks(module: nn.Module) -> bool:
    """Whether this module has hooks, or a `forward` that is not that of its class."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or "forward" in module.__dict__
    )


def _can_run(backend: Backend, activations: Activations, *tensors: Tensor, autocast: bool = False) -> bool:
    """The rules that all kernels share; "fused" raises an error where they do not hold."""
    if backend == "reference":
        return False
    possible = _is_known(activations) and _are_plain(*tensors, autocast=autocast)
    if backend == "fused" and not possible:
        raise UserError(
            'backend="fused" needs float32 tensors on the CPU, tanh or relu, sigmoid gates, and no compiling, '
            'exporting, autocast or torch.func; backend="auto" falls back to torch\'s operations'
        )
    return possible


def _is_known(activations: Activations) -> bool:
    """Whether there are kernels for the activations: torch's own functions, not others of the same name."""
    block, *gates = activations
    known = any(block is function for function in (torch.tanh, torch.relu, F.tanh, F.relu))
    return known and all(gate is torch.sigmoid for gate in gates)


def _are_plain(*tensors: Tensor, autocast: bool = False) -> bool:
    """Whether all are ordinary, non-empty float32 tensors on the CPU, not being traced, compiled or transformed.

    With `autocast`, they may be used inside of it.
    """
    if torch.is_autocast_enabled("cpu") and not autocast:
        return False
    return not _is_transformed() and all(map(_is_plain, tensors))


def _is_transformed() -> bool:
    """Whether operations are seen by a compiler, exporter, tracer, torch.func or a dispatch mode."""
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or _get_current_dispatch_mode() is not None
    )


def _is_plain(tensor: Tensor) -> bool:
    ordinary = type(tensor) is Tensor or type(tensor) is nn.Parameter
    return ordinary and tensor.dtype == torch.float32 and tensor.is_cpu and tensor.numel() > 0


def _takes_gradient(parameter: Tensor) -> bool:
    hooks = parameter._backward_hooks or parameter._post_accumulate_grad_hooks
    return parameter.is_leaf and parameter.requires_grad and parameter.grad is None and not hooks


def _is_planned(conv: nn.Module) -> bool:
    if type(conv) is not nn.Conv2d or conv.stride != (1, 1) or not _is_square(conv):
        return False
    weight, bias = conv._parameters.get("weight"), conv._parameters.get("bias")
    if weight is None or bias is None or not (_is_plain(weight) and _is_plain(bias)):
        return False
    if weight.is_inference() or bias.is_inference():  # torch does not count their changes
        return False
    side = conv.kernel_size[0]
    return side in (3, 5) or (side == 1 and conv.padding == (0, 0))


def _has_channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)


def _is_square(conv: nn.Conv2d) -> bool:
    """Whether a convolution treats rows and columns alike, pads with zeros, and has neither groups nor dilation."""
    pairs = conv.kernel_size, conv.stride, conv.padding
    alike = all(not isinstance(pair, str) and pair[0] == pair[1] for pair in pairs)
    return alike and conv.groups == 1 and conv.dilation == (1, 1) and conv.padding_mode == "zeros"
