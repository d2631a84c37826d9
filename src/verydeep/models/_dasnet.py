"""dasNet (Stollenga et al. 2014): a convolutional network that looks at an image several times.

After each pass a policy sees the mean of every feature map and the predicted probabilities, and sets a gain for every
feature map of the next pass. The authors published no code; this is a small version after their paper.
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models._conv import ConvNet
from verydeep.models._network import Network
from verydeep.models._spec import ConvConfig, Layer
from verydeep.nn import Trace


@dataclass(frozen=True)
class DasNetConfig:
    """A convolutional network whose feature maps are weighted by a policy.

    Attributes:
        layers: The layers of the network that looks, from input to output.
        input_shape: `(channels, height, width)`.
        classes: Number of outputs.
        classifier_std: As in `ConvConfig`.
        passes: How often the network looks again at an image, with new gains.

    Example:
        >>> from verydeep.models import Conv, DasNetConfig, Pool, build
        >>> model = build(DasNetConfig((Conv(8, pieces=2), Pool(2, 2), Conv(16, pieces=2), Pool())))
        >>> model.policy.shape  # a gain for each of 24 maps, from their means and 10 probabilities
        torch.Size([24, 34])
    """

    layers: tuple[Layer, ...]
    input_shape: tuple[int, ...] = (3, 32, 32)
    classes: int = 10
    classifier_std: float | None = 0.05
    passes: int = 3

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise UserError(f"passes must be at least 1, got {self.passes}")

    @property
    def network(self) -> ConvConfig:
        """The network that looks."""
        return ConvConfig(self.layers, self.input_shape, self.classes, classifier_std=self.classifier_std)

    @property
    def depth(self) -> int:
        """The number of hidden layers of the network that looks."""
        return self.network.depth


class DasNet(Network):
    """A convolutional network and a policy that weights its feature maps over several passes.

    In training mode the network makes one pass, without the policy: it is trained first, and the policy is learnt for
    its fixed weights. A policy of zeros, the initial one, gives all maps the gain 1 and changes nothing.

    Args:
        config: The description of the network.
        device: Device of the parameters.
        dtype: Data type of the parameters.

    Attributes:
        network: The network that looks.
        policy: `(map, map + class)`: from the means of all feature maps and the probabilities to the gains.

    Example:
        >>> import torch
        >>> from verydeep.models import Conv, DasNet, DasNetConfig, Pool
        >>> model = DasNet(DasNetConfig((Conv(8, pieces=2), Pool()), input_shape=(3, 8, 8))).eval()
        >>> x = torch.randn(2, 3, 8, 8)
        >>> torch.allclose(model(x), model.network(x))  # as long as the policy is 0
        True
    """

    policy: Tensor

    def __init__(
        self, config: DasNetConfig, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.network = ConvNet(config.network, device=device, dtype=dtype)
        self.maps = _feature_maps(self.network)
        if not self.maps:
            raise UserError("dasNet needs at least one convolution with an activation, whose maps it can weight")
        count = sum(self.maps.values())
        self.register_buffer("policy", torch.zeros(count, count + config.classes, device=device, dtype=dtype))

    @property
    def classifier(self) -> nn.Linear | None:  # type: ignore[override]
        """The classifier of the network that looks."""
        return self.network.classifier

    @property
    def highway_depth(self) -> int:
        return 0

    def reset_parameters(self) -> None:
        self.network.reset_parameters()
        self.policy.zero_()

    def trace(self, x: Tensor, closed: Collection[int] = ()) -> tuple[Trace, ...]:
        self._check(x, closed)
        return ()

    def forward(self, x: Tensor, closed: Collection[int] = ()) -> Tensor:
        self._check(x, closed)
        if self.training:
            return self.network(x)  # type: ignore[no-any-return]
        gains: Tensor | None = None
        for _ in range(self.config.passes):
            logits, means = self._look(x, gains)
            gains = self._gains(torch.cat([means, logits.softmax(1)], 1))
        return self._look(x, gains)[0]

    def _gains(self, observed: Tensor) -> Tensor:
        """The gain of each map, `(batch, map)`, with mean 1."""
        open_maps = torch.sigmoid(observed @ self.policy.T)
        return open_maps * (open_maps.shape[1] / open_maps.sum(1, keepdim=True))

    def _look(self, x: Tensor, gains: Tensor | None) -> tuple[Tensor, Tensor]:
        """One pass: the logits, and the mean of each feature map before its gain, `(batch, map)`."""
        means, first = [], 0
        for name, layer in self.network.layers.named_children():
            x = layer(x)
            if name in self.maps:
                means.append(x.mean((2, 3)))
                if gains is not None:
                    x = x * gains[:, first : first + self.maps[name], None, None]
                first += self.maps[name]
        x = x.flatten(1)
        return x if self.network.classifier is None else self.network.classifier(x), torch.cat(means, 1)


def _feature_maps(network: ConvNet) -> dict[str, int]:
    """The number of maps after each activation of a convolution, by the activation's name."""
    children = list(network.layers.named_children())
    return {
        name: before.out_channels // getattr(layer, "pieces", 1)
        for (_, before), (name, layer) in pairwise(children)
        if isinstance(before, nn.Conv2d) and name.startswith("activation") and not isinstance(layer, nn.Identity)
    }
