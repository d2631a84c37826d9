"""How a convolution becomes matrix products: the interface of `_tiles` and `_patches`."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from verydeep.kernels.conv._shape import Shape, Size
from verydeep.kernels.ir._values import Int, IntPtr, Ptr


class Gradients(NamedTuple):
    """What the backward pass through the products of a piece of work reads and writes.

    Attributes:
        x: The images.
        u: The filters, `(position, out, term)`.
        dx: The gradient of x, written where `with_dx` is not 0.
        du: The gradients of filters and bias; they are accumulated unless `first` is not 0.
        first: Whether this is the first piece that is added to du.
        with_dx: Whether the gradient of x is needed.
        add: Whether dx is added to what is there.
    """

    x: Ptr
    u: Ptr
    dx: Ptr
    du: Ptr
    first: Int
    with_dx: Int
    add: bool


class Lowered(ABC):
    """A piece of work inside a kernel: its scratch memory, and the products.

    Attributes:
        m_row: The distance of two pixels of z in scratch memory.
    """

    m_row: Size

    @abstractmethod
    def multiply(self, x: Ptr, u: Ptr) -> None:
        """Compute the products of the forward pass."""

    @abstractmethod
    def collect(self, image: Int) -> None:
        """Make the products of one image a part of z."""

    @abstractmethod
    def z_pixels(self, image: Int, row: Int) -> Ptr:
        """A row of the image of z, or of dz, that was collected last."""

    @abstractmethod
    def clear_z(self) -> None:
        """Write zeros where dz will be written, because of what lies between its pixels."""

    @abstractmethod
    def d_collect(self, image: Int) -> None:
        """The derivative of `collect`."""

    @abstractmethod
    def d_multiply(self, d: Gradients) -> None:
        """The derivative of `multiply`."""


class Lowering(ABC):
    """A way of computing convolutions of one receptive field and stride."""

    @abstractmethod
    def scratch_size(self, s: Shape) -> int:
        """The size of the scratch memory of a piece of work, in numbers."""

    @abstractmethod
    def lay_out(self, s: Shape, scratch: Ptr, sizes: IntPtr) -> Lowered:
        """A piece of work inside a kernel; `sizes` are those that all pieces share."""
