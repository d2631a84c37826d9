"""The protocol of Figure 1 (Section 4.1): its networks, the search space, and how long each setting is trained.

The paper trained plain and highway networks of 10, 20, 50 and 100 layers on MNIST with 100 random settings each. It
searched over the initial learning rate, momentum, the learning rate's exponential decay factor, the activation and, for
highways, the gate bias between -1 and -10. It published the ranges of the last two; the other ranges are ours, and the
same for both families:

* learning rate 1e-4 to 1, log-uniform: the best values we knew are 0.002 (plain, 50 layers) and 0.2 (highway, 50
  layers), and the range extends beyond either by a factor of five or more;
* momentum 0.5 to 0.99: below, SGD is merely slower; above, the velocity still remembers 100 updates;
* decay factor 0.9 to 1 per epoch: after 100 epochs the learning rate is 3e-5 of its initial value, or unchanged.

A setting's number determines each of its values independently of the others, so plain and highway networks of every
depth are compared with the same learning rates, momenta and decay factors.
"""

from dataclasses import dataclass, replace
from typing import Literal

from verydeep.data import DataConfig
from verydeep.errors import unknown
from verydeep.search import Choices, Range, Settings, Space, draw, with_settings
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig

DEPTHS = (10, 20, 50, 100)
WIDTHS = {"plain": 71, "highway": 50}
SEED = 0


@dataclass(frozen=True)
class Fig1Network:
    """A network of the figure: one curve in each panel."""

    family: Literal["plain", "highway"]
    depth: int

    @property
    def name(self) -> str:
        """The name in files and options, such as `highway-50`."""
        return f"{self.family}-{self.depth}"

    @property
    def space(self) -> Space:
        """The search space; both families share all ranges except that of the gate bias."""
        shared: Space = {
            "optim.lr": Range(1e-4, 1.0, log=True),
            "optim.momentum": Range(0.5, 0.99),
            "schedule.factor": Range(0.9, 1.0),
            "model.activation": Choices(("tanh", "relu")),
        }
        return shared | ({"model.gate_bias": Range(-10.0, -1.0)} if self.family == "highway" else {})


NETWORKS = tuple(Fig1Network(family, depth) for depth in DEPTHS for family in ("plain", "highway"))


@dataclass(frozen=True)
class HalvingStage:
    """A stage of successive halving.

    Attributes:
        epochs: Number of epochs that its settings have trained at the end of the stage.
        settings: Number of settings that take part: the best of the stage before.
    """

    epochs: int
    settings: int


@dataclass(frozen=True)
class Protocol:
    """The stages of training, and the dataset."""

    stages: tuple[HalvingStage, ...]
    data: str = "mnist"

    @property
    def settings(self) -> int:
        """Number of settings per network."""
        return self.stages[0].settings

    @property
    def epochs(self) -> int:
        """Number of epochs of the last stage."""
        return self.stages[-1].epochs

    def base(self, network: Fig1Network) -> TrainConfig:
        """The configuration that all settings of a network share."""
        return TrainConfig(
            data=DataConfig(self.data),
            model=ModelConfig(f"{network.family}-mlp", depth=network.depth, width=WIDTHS[network.family]),
            optim=OptimConfig(),
            schedule=ScheduleConfig("exponential"),
            epochs=self.epochs,
            evaluate_train=True,
            device="cpu",
            threads=1,
        )

    def config(self, network: Fig1Network, trial: int) -> TrainConfig:
        """The configuration of a trial."""
        return with_settings(self.base(network), settings_of(network, trial))


def settings_of(network: Fig1Network, trial: int) -> Settings:
    """Draw the settings of a trial."""
    return draw(network.space, SEED, trial)


HALVING = Protocol((HalvingStage(2, 100), HalvingStage(10, 33), HalvingStage(100, 10)))
QUICK = Protocol((HalvingStage(1, 4), HalvingStage(2, 2), HalvingStage(3, 1)), "digits")


def without_halving(protocol: Protocol) -> Protocol:
    """Train every setting to the full length."""
    return replace(protocol, stages=(HalvingStage(protocol.epochs, protocol.settings),))


def selected_networks(only: str | None) -> tuple[Fig1Network, ...]:
    """The networks named in a comma-separated list; by default, all."""
    known = {network.name: network for network in NETWORKS}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown("network of Figure 1", name, known)
    return tuple(network for network in NETWORKS if network.name in names)
