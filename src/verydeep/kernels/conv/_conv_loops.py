"""The loops of a convolutional layer, for every receptive field and everything that may follow the convolution.

A lowering makes matrix products of a convolution: `_tiles` (Winograd) or `_patches` (directly). An epilogue is what
follows. A piece of work is a group of images, or some rows of one image: what lies between x and y stays in the
processor's cache, and only the layer's results (y, dx) and what the backward pass needs (z) go through memory.

Images are `(row, column, channel)`; z has the channels of each affine map one after the other. Filters u are
`(position, term, out)`, followed by the bias, and `(position, out, term)` for the backward pass; the last dimension is
padded to whole registers. Tiles have 36 positions, whose terms are the channels of x. Patches have one position for
each of their rows, whose terms are the numbers in that row.
"""

from collections.abc import Callable
from functools import cache

from verydeep.kernels.conv._epilogue import Epilogue, make_d_epilogue, make_epilogue
from verydeep.kernels.conv._lowering import Gradients, Lowering
from verydeep.kernels.conv._patches import Direct
from verydeep.kernels.conv._shape import Shape
from verydeep.kernels.conv._tiles import Winograd
from verydeep.kernels.gate._gate_loops import map_parts
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._values import Int, IntPtr, Matrix, Ptr


@cache
def make_lowering(taps: int, stride: int, winograd: bool) -> Lowering:
    """The lowering of a convolution."""
    return Winograd(taps) if winograd else Direct(taps, stride)


@cache
def make_conv_forward(lowering: Lowering, epilogue: Epilogue) -> Kernel:
    """The forward pass: y of some images, or of some rows of them, and z where `keep` is not 0."""
    run_piece = _make_forward_piece(lowering, epilogue)

    @kernel(flush=True)
    def conv_forward(
        x: Ptr,
        u: Ptr,
        z: Ptr,
        y: Ptr,
        scratch: Ptr,
        sizes: IntPtr,
        images: Int,
        first: Int,
        rows: Int,
        keep: Int,
        group: Int,
    ) -> None:
        s = Shape.read(sizes, group)
        blocks = s.outs // epilogue.affine_maps

        def run(done: Int, count: Int) -> None:
            x_there, pixel = x + done * s.height * s.width * s.channels, done * s.out_height * s.out_width
            there = x_there, u, z + pixel * s.outs, y + pixel * blocks, scratch, sizes
            run_piece(*there, count, first, rows, keep)

        _in_groups(images, group, run)

    return conv_forward


@cache
def make_conv_backward(lowering: Lowering, epilogue: Epilogue) -> Kernel:
    """The backward pass: dx where `with_dx` is not 0, and du, which is that of u and the bias.

    `kept` is z, or the y of a rectifier.
    """
    run_piece = _make_backward_piece(lowering, epilogue)

    @kernel(flush=True)
    def conv_backward(
        dy: Ptr,
        x: Ptr,
        kept: Ptr,
        u: Ptr,
        dx: Ptr,
        du: Ptr,
        scratch: Ptr,
        sizes: IntPtr,
        images: Int,
        with_dx: Int,
        group: Int,
    ) -> None:
        s = Shape.read(sizes, group)
        blocks = s.outs // epilogue.affine_maps
        kept_numbers = s.outs if epilogue.needs_z else blocks

        def run(done: Int, count: Int) -> None:
            x_number, pixel = done * s.height * s.width * s.channels, done * s.out_height * s.out_width
            there = dy + pixel * blocks, x + x_number, kept + pixel * kept_numbers, u, dx + x_number, du, scratch, sizes
            run_piece(*there, count, group // (done + group), with_dx)  # the first quotient is 1

        _in_groups(images, group, run)

    return conv_backward


def _in_groups(images: Int, group: Int, run: Callable[[Int, Int], None]) -> None:
    """Call `run(done, count)` for each group of images."""
    full = images // group
    with loop(full) as i:
        run(i * group, group)
    with when(images != full * group):
        run(full * group, images - full * group)


def _make_forward_piece(lowering: Lowering, epilogue: Epilogue) -> Kernel:

    @kernel
    def forward_piece(
        x: Ptr, u: Ptr, z: Ptr, y: Ptr, scratch: Ptr, sizes: IntPtr, images: Int, first: Int, rows: Int, keep: Int
    ) -> None:
        s = Shape.read(sizes, images, first, rows)
        lowered = lowering.lay_out(s, scratch, sizes)
        lowered.multiply(x, u)
        blocks = s.outs // epilogue.affine_maps
        with loop(images) as i:
            lowered.collect(i)
            with loop(rows) as j:
                pixel = (i * s.out_height + first + j) * s.out_width
                z_parts = map_parts(lowered.z_pixels(i, j), blocks, epilogue.affine_maps, lowered.m_row)
                carried = [Matrix(x + pixel * blocks, blocks)] if epilogue.carries else []
                values = [*carried, *z_parts, Matrix(y + pixel * blocks, blocks)]
                with when(keep == 0):
                    make_epilogue(epilogue, keep=False)(s.out_width, blocks, *values)
                with when(keep != 0):
                    kept = map_parts(z + pixel * s.outs, blocks, epilogue.affine_maps)
                    make_epilogue(epilogue, keep=True)(s.out_width, blocks, *values, *kept)

    return forward_piece


def _make_backward_piece(lowering: Lowering, epilogue: Epilogue) -> Kernel:
    """The backward pass of a piece of work; du is accumulated, except where `first` is not 0."""

    @kernel
    def backward_piece(
        dy: Ptr,
        x: Ptr,
        kept: Ptr,
        u: Ptr,
        dx: Ptr,
        du: Ptr,
        scratch: Ptr,
        sizes: IntPtr,
        images: Int,
        first: Int,
        with_dx: Int,
    ) -> None:
        s = Shape.read(sizes, images)
        lowered = lowering.lay_out(s, scratch, sizes)
        blocks = s.outs // epilogue.affine_maps
        lowered.clear_z()
        with loop(images) as i:
            with loop(s.out_height) as j:
                pixel = (i * s.out_height + j) * s.out_width
                carried, d_carried = (
                    [Matrix(start + pixel * blocks, blocks)] if epilogue.carries else [] for start in (x, dx)
                )
                values = [Matrix(dy + pixel * blocks, blocks), *carried]
                if epilogue.needs_z:
                    values += map_parts(kept + pixel * s.outs, blocks, epilogue.affine_maps)
                elif epilogue.kind == "relu":
                    values.append(Matrix(kept + pixel * blocks, blocks))
                dz = map_parts(lowered.z_pixels(i, j), blocks, epilogue.affine_maps, lowered.m_row)
                make_d_epilogue(epilogue)(s.out_width, blocks, *values, *d_carried, *dz)
            lowered.d_collect(i)
        lowered.d_multiply(Gradients(x, u, dx, du, first, with_dx, add=epilogue.carries))

    return backward_piece
