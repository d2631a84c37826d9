"""The protocol of Figure 1 (Section 4.1): its networks, and how long each setting is trained.

What each network is and which settings are searched is in `configs/fig1/`, a search configuration per network. A
setting's number determines each of its values independently of the others, so plain and highway networks of every depth
are compared with the same learning rates, momenta and decay factors.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from verydeep.config import config_folder
from verydeep.errors import unknown
from verydeep.search import SearchConfig, read_search
from verydeep.studies import Group, Sampling, Settings, Space, Stages, draw
from verydeep.training import TrainConfig, complete_config

DEPTHS = (10, 20, 50, 100)
METRIC = "train_loss"  # decides who enters the next stage


@dataclass(frozen=True)
class Fig1Network:
    """A network of the figure: one curve in each panel."""

    family: Literal["plain", "highway"]
    depth: int

    @property
    def name(self) -> str:
        """The name in files and options, such as `highway-50`."""
        return f"{self.family}-{self.depth}"

    @cached_property
    def search(self) -> SearchConfig:
        """What is trained and searched, from the network's file."""
        return read_search(config_folder() / "fig1" / f"{self.name}.toml")

    @property
    def space(self) -> Space:
        """The search space; both families share all ranges except that of the gate bias."""
        return self.search.space


NETWORKS = tuple(Fig1Network(family, depth) for depth in DEPTHS for family in ("plain", "highway"))


@dataclass(frozen=True)
class Protocol:
    """The stages of training, and the dataset."""

    stages: Stages
    data: str = "mnist"

    @property
    def settings(self) -> int:
        """Number of settings per network."""
        return self.stages.trainings[0]

    @property
    def epochs(self) -> int:
        """Number of epochs of the last stage."""
        return self.stages.epochs[-1]

    def base(self, network: Fig1Network) -> TrainConfig:
        """The configuration that all settings of a network share."""
        shared = network.search.train
        return complete_config(replace(shared, data=replace(shared.data, source=self.data), epochs=self.epochs))

    def group(self, network: Fig1Network) -> Group:
        """A network's trials, as the study trains them."""
        sampling = Sampling(network.space, self.settings, network.search.options.seed)
        return Group(network.name, self.base(network), sampling=sampling, halving=self.stages)


def settings_of(network: Fig1Network, trial: int) -> Settings:
    """Draw the settings of a trial."""
    return draw(network.space, network.search.options.seed, trial)


HALVING = Protocol(Stages(epochs=(2, 10, 100), trainings=(100, 33, 10)))
QUICK = Protocol(Stages(epochs=(1, 2, 3), trainings=(4, 2, 1)), "digits")


def without_halving(protocol: Protocol) -> Protocol:
    """Train every setting to the full length."""
    return replace(protocol, stages=Stages((protocol.epochs,), (protocol.settings,)))


def selected_networks(only: str | None) -> tuple[Fig1Network, ...]:
    """The networks named in a comma-separated list; by default, all."""
    known = {network.name: network for network in NETWORKS}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown("network of Figure 1", name, known)
    return tuple(network for network in NETWORKS if network.name in names)
