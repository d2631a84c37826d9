"""Learning the policy of a dasNet for the fixed weights of a trained convolutional network."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.models import ConvNet, DasNet, DasNetConfig
from verydeep.objectives import Classification
from verydeep.optim import SNES


@dataclass(frozen=True)
class Attention:
    """How the policy of a dasNet is learnt.

    Attributes:
        passes: How often the network looks again at an image.
        generations: Number of generations of SNES.
        population: Candidates per generation; None stands for the default of `SNES`.
        images: Images per generation, drawn at random.
        deviation: Initial deviation of the policy's numbers.
        decay: Weight of the mean square of the policy in the loss.
        seed: Determines the candidates and the images.

    Example:
        >>> from verydeep.training import Attention
        >>> Attention(passes=2, generations=10).images
        128
    """

    passes: int = 3
    generations: int = 50
    population: int | None = None
    images: int = 128
    deviation: float = 0.05
    decay: float = 0.005
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("passes", "generations", "images"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, got {getattr(self, name)}")


def learn_attention(
    network: ConvNet,
    split: Split,
    settings: Attention = Attention(),  # noqa: B008 - frozen
    report: Callable[[int, float], None] | None = None,
) -> DasNet:
    """Learn a policy for the fixed weights of a network by SNES.

    Args:
        network: A trained convolutional network; it is not changed.
        split: The images to learn from: validation images, which the network was not trained on.
        settings: How the policy is learnt.
        report: Called after each generation with its number, counted from 1, and the mean loss of its candidates.

    Returns:
        A network that weights its feature maps by the mean of the last generation, in evaluation mode.

    Example:
        >>> import torch
        >>> from verydeep.data import Split
        >>> from verydeep.models import Conv, ConvConfig, ConvNet, Pool
        >>> from verydeep.training import Attention, learn_attention
        >>> network = ConvNet(ConvConfig((Conv(4), Pool()), input_shape=(1, 8, 8), classes=3))
        >>> split = Split(torch.randn(50, 1, 8, 8), torch.arange(50) % 3)
        >>> model = learn_attention(network, split, Attention(passes=1, generations=2, images=10))
        >>> model(torch.randn(2, 1, 8, 8)).shape
        torch.Size([2, 3])
    """
    if split.y.is_floating_point():
        raise UserError("the policy of a dasNet is learnt for classes; this is another task")
    model = make_dasnet(network, settings.passes)
    search = SNES(model.policy.cpu(), settings.deviation, population=settings.population, seed=settings.seed)
    random = torch.Generator().manual_seed(settings.seed)
    objective = Classification()
    with torch.no_grad():
        for generation in range(1, settings.generations + 1):
            rows = torch.randperm(len(split), generator=random)[: settings.images]
            x, y = split.prepared(split.x[rows]).to(model.policy.device), split.y[rows].to(model.policy.device)
            losses = []
            for candidate in search.ask():
                _set_policy(model, candidate)
                loss = objective.loss(model(x), y) / len(y) + settings.decay * candidate.square().mean()
                losses.append(loss.cpu())
            search.tell(torch.stack(losses))
            if report is not None:
                report(generation, float(torch.stack(losses).mean()))
        _set_policy(model, search.mean)
    return model


def make_dasnet(network: ConvNet, passes: int) -> DasNet:
    """A dasNet with copies of a network's weights and a policy of zeros, in evaluation mode."""
    config = network.config
    if any(getattr(layer, "kernels", None) for layer in config.layers):
        raise UserError("dasNet weights the feature maps of plain convolutions; this network has highway layers")
    model = DasNet(DasNetConfig(config.layers, config.input_shape, config.classes, config.classifier_std, passes))
    model.network.load_state_dict(network.state_dict())
    return model.to(next(network.parameters()).device).eval()


def _set_policy(model: DasNet, numbers: Tensor) -> None:
    model.policy.copy_(numbers.view_as(model.policy))
