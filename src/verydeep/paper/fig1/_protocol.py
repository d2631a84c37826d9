"""Figure 1 (Section 4.1): plain and highway networks of 10, 20, 50 and 100 layers on MNIST, 100 random settings each.

The paper searched over the initial learning rate, momentum, the learning rate's exponential decay factor, the
activation and, for highways, the gate bias between -1 and -10. It published the last two; the other ranges are ours,
and the same for both families:

* learning rate 1e-4 to 1, log-uniform: the best we knew are 0.002 (plain, 50 layers) and 0.2 (highway, 50 layers), and
  there is more than a factor of five beyond either;
* momentum 0.5 to 0.99: below, plain SGD is only slower; above, 100 updates do not forget;
* decay factor 0.9 to 1 an epoch: after 100 epochs the rate is 3e-5 of what it was, or unchanged.

A setting's number decides its values field by field, so plain and highway networks of every depth are compared under
the same learning rates, momenta and factors.
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
class Network:
    """One curve of the figure."""

    family: Literal["plain", "highway"]
    depth: int

    @property
    def name(self) -> str:
        """As files and options call it."""
        return f"{self.family}-{self.depth}"

    @property
    def space(self) -> Space:
        """What is searched; the shared ranges are the same for both families."""
        shared: Space = {
            "optim.lr": Range(1e-4, 1.0, log=True),
            "optim.momentum": Range(0.5, 0.99),
            "schedule.factor": Range(0.9, 1.0),
            "model.activation": Choices(("tanh", "relu")),
        }
        return shared | ({"model.gate_bias": Range(-10.0, -1.0)} if self.family == "highway" else {})


NETWORKS = tuple(Network(family, depth) for depth in DEPTHS for family in ("plain", "highway"))


@dataclass(frozen=True)
class Stage:
    """A part of the protocol.

    Attributes:
        epochs: How long its settings have trained at its end.
        settings: How many take part: the best of the stage before.
    """

    epochs: int
    settings: int


@dataclass(frozen=True)
class Protocol:
    """How long what is trained, on which data."""

    stages: tuple[Stage, ...]
    data: str = "mnist"

    @property
    def settings(self) -> int:
        """How many there are of each network."""
        return self.stages[0].settings

    @property
    def epochs(self) -> int:
        """The full length."""
        return self.stages[-1].epochs

    def base(self, network: Network) -> TrainConfig:
        """What all settings of a network have in common."""
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

    def config(self, network: Network, trial: int) -> TrainConfig:
        """A trial's configuration."""
        return with_settings(self.base(network), settings_of(network, trial))


def settings_of(network: Network, trial: int) -> Settings:
    """The settings of a trial."""
    return draw(network.space, SEED, trial)


HALVING = Protocol((Stage(2, 100), Stage(10, 33), Stage(100, 10)))
QUICK = Protocol((Stage(1, 4), Stage(2, 2), Stage(3, 1)), "digits")


def strict(protocol: Protocol) -> Protocol:
    """Every setting to the full length."""
    return replace(protocol, stages=(Stage(protocol.epochs, protocol.settings),))


def chosen(only: str | None) -> tuple[Network, ...]:
    """The networks named, separated by commas; all unless given."""
    known = {network.name: network for network in NETWORKS}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown("network of Figure 1", name, known)
    return tuple(network for network in NETWORKS if network.name in names)
