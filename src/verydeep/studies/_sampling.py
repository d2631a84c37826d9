"""How the settings of a trial are drawn, at random or by TPE, and how Optuna stores them.

Random settings follow from the seed, the trial's number and each field's name. So any number of workers on any
number of machines draw the same settings in any order, and a field has the same values whatever else is searched:
two networks searched with one seed are compared under the same learning rates.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from verydeep.studies._space import Choices, Domain, Settings, Space, former_fields, with_current_names
from verydeep.studies.storage._store import quiet_optuna

RANDOM_FIRST = 10  # trials with random settings before TPE has enough to learn from


def draw(space: Space, seed: int, number: int) -> Settings:
    """The random settings of a trial."""
    former = {new: old for old, new in former_fields().items()}  # renaming a field does not change its values
    streams = {name: random.Random(f"{seed}/{number}/{former.get(name, name)}") for name in space}
    return {name: domain.at(streams[name].random()) for name, domain in space.items()}


def suggest_tpe(study: optuna.Study, trial: FrozenTrial, space: Space, seed: int) -> dict[str, Any]:
    """The settings that TPE suggests, as Optuna stores them; kept with the trial, so that every attempt has the same.

    Args:
        study: The study, which remembers the trials it has read before.
        trial: The trial that gets the settings.
        space: What is searched.
        seed: The seed of this trial.
    """
    from optuna.samplers import TPESampler

    distributions = optuna_distributions(space)
    with quiet_optuna():
        sampler = TPESampler(seed=seed, constant_liar=True)
        params = {name: sampler.sample_independent(study, trial, name, d) for name, d in distributions.items()}
    for name, value in params.items():
        internal = distributions[name].to_internal_repr(value)
        study._storage.set_trial_param(trial._trial_id, name, internal, distributions[name])
    return params


def optuna_distributions(space: Space) -> dict[str, BaseDistribution]:
    """The space as Optuna's distributions."""
    return {name: _distribution(domain) for name, domain in space.items()}


def encode_settings(space: Space, settings: Settings) -> dict[str, Any]:
    """Settings as Optuna stores them: lists among choices become JSON."""
    return {name: _encode(value) if isinstance(space[name], Choices) else value for name, value in settings.items()}


def decode_settings(space: Space, params: Mapping[str, Any]) -> Settings | None:
    """Settings from what Optuna stores; None unless `params` has all fields, under their present or former names."""
    params = with_current_names(params)
    if params.keys() != space.keys():
        return None
    return {name: _decode(domain, params[name]) for name, domain in space.items()}


def _distribution(domain: Domain) -> BaseDistribution:
    if isinstance(domain, Choices):
        return CategoricalDistribution([_encode(choice) for choice in domain.choices])
    if domain.whole:
        return IntDistribution(int(domain.low), int(domain.high), log=domain.log)
    return FloatDistribution(domain.low, domain.high, log=domain.log)


def _encode(value: Any) -> Any:  # noqa: ANN401
    return json.dumps(value) if isinstance(value, list | tuple) else value


def _decode(domain: Domain, stored: Any) -> Any:  # noqa: ANN401
    if isinstance(domain, Choices):
        value = next(choice for choice in domain.choices if _encode(choice) == stored)
        return list(value) if isinstance(value, tuple) else value
    return stored
