"""What follows the convolution of a layer: nothing, a rectifier, maxout, or the highway operation.

z has one part for each affine map: one in a plain layer, one per piece of maxout, and H, T and an independent C in a
highway layer. Each formula works on a pixel of all parts, and gives as many feature maps as a part has.
"""

from collections.abc import Sequence
from functools import cache, reduce
from typing import NamedTuple

from verydeep.kernels import _formulas as f
from verydeep.kernels.gate._gate_loops import d_gate_formula, gate_formula
from verydeep.kernels.ir._elementwise import Formula, make_rowwise
from verydeep.kernels.ir._kernel import Kernel
from verydeep.kernels.ir._vector import Vec, where


class Epilogue(NamedTuple):
    """One member of the family.

    Attributes:
        kind: "linear", "relu", "maxout", "highway_relu" or "highway_tanh".
        affine_maps: The number of parts of z.
    """

    kind: str
    affine_maps: int

    @property
    def carries(self) -> bool:
        """Whether y depends on x itself, as in a highway layer."""
        return self.kind.startswith("highway")

    @property
    def needs_z(self) -> bool:
        """Whether the backward pass needs z; that of a rectifier needs only y."""
        return self.carries or self.kind == "maxout"

    @property
    def activation(self) -> str:
        """The activation of the block state of a highway layer."""
        return self.kind.removeprefix("highway_")


@cache
def make_epilogue(epilogue: Epilogue, keep: bool) -> Kernel:
    """`epilogue(rows, numbers, [x,] *z, y)`; with `keep`, z is copied to further outputs after y."""
    formula, inputs = _formula(epilogue), epilogue.carries + epilogue.affine_maps

    def kept(*values: Vec) -> Sequence[Vec]:
        return *formula(*values), *values[epilogue.carries :]

    if not keep:
        return make_rowwise("epilogue", formula, inputs, 1)
    return make_rowwise("epilogue_keep", kept, inputs, 1 + epilogue.affine_maps)


@cache
def make_d_epilogue(epilogue: Epilogue) -> Kernel:
    """`d_epilogue(rows, numbers, dy, [x,] *kept, [dx,] *dz)`: kept is z, or the y of a rectifier."""
    kept = epilogue.affine_maps if epilogue.needs_z else int(epilogue.kind == "relu")
    outputs = epilogue.carries + epilogue.affine_maps
    return make_rowwise("d_epilogue", _d_formula(epilogue), 1 + epilogue.carries + kept, outputs)


def _formula(epilogue: Epilogue) -> Formula:
    if epilogue.carries:
        return gate_formula(epilogue.affine_maps, epilogue.activation)
    formulas: dict[str, Formula] = {
        "linear": lambda z: (z,),
        "relu": lambda z: (f.relu(z),),
        "maxout": lambda *z: (_largest(z),),
    }
    return formulas[epilogue.kind]


def _d_formula(epilogue: Epilogue) -> Formula:
    if epilogue.carries:
        return d_gate_formula(epilogue.affine_maps, epilogue.activation)
    formulas: dict[str, Formula] = {
        "linear": lambda dy: (dy,),
        "relu": lambda dy, y: (f.d_relu(y, dy),),
        "maxout": _d_maxout,
    }
    return formulas[epilogue.kind]


def _largest(z: Sequence[Vec]) -> Vec:
    """The maximum; NaN if there is one."""
    return reduce(f.larger, z)


def _d_maxout(dy: Vec, *z: Vec) -> Sequence[Vec]:
    """Dz as torch defines it: pieces that share the maximum share its gradient, too."""
    y = _largest(z)
    largest = [where(one == y, 1.0, 0.0) for one in z]
    share = dy / reduce(lambda a, b: a + b, largest)
    return [share * one for one in largest]
