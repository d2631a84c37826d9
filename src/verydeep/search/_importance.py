"""How much each field mattered: functional ANOVA (Hutter et al. 2014) over the ranks of the trials.

Ranks, because losses span decades and a diverged run has none: it ranks last.
"""

import optuna
from optuna.trial import create_trial

from verydeep.search._distributions import distribution, encoded
from verydeep.search._records import Record, ranked
from verydeep.search._space import Space
from verydeep.search._storage import quiet_optuna

_FEWEST = 4  # trials


def weighed(found: list[Record], maximise: bool) -> list[Record]:
    """The trials that importance follows from, the best first."""
    return [record for record in ranked(found, maximise) if record.status != "failed" and record.settings]


def importance(found: list[Record], space: Space, maximise: bool) -> dict[str, float]:
    """The share of what the settings decide that each field decides, the largest first; empty for very few trials."""
    ended = weighed(found, maximise)
    if len(ended) < _FEWEST or len(space) < 2:
        return {}
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances  # slow, and no worker needs it

    distributions = {name: distribution(way) for name, way in space.items()}
    with quiet_optuna():
        study = optuna.create_study()
        for rank, record in enumerate(ended):
            params = encoded(space, record.settings)
            study.add_trial(create_trial(params=params, distributions=distributions, value=float(rank)))
        shares = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in shares.items()}
