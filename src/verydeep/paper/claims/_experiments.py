"""All experiments, in the order of the paper."""

from verydeep.errors import unknown
from verydeep.paper.claims._experiment import ClaimExperiment
from verydeep.paper.claims.experiments._activation import ACTIVATION
from verydeep.paper.claims.experiments._competition import COMPETITION
from verydeep.paper.claims.experiments._conv_bias import CONV_BIAS
from verydeep.paper.claims.experiments._depth import DEPTH
from verydeep.paper.claims.experiments._forms import FORMS
from verydeep.paper.claims.experiments._gate_bias import GATE_BIAS
from verydeep.paper.claims.experiments._init import INIT
from verydeep.paper.claims.experiments._inside import INSIDE
from verydeep.paper.claims.experiments._longer import LONGER
from verydeep.paper.claims.experiments._optimisation import OPTIMISATION
from verydeep.paper.claims.experiments._parity import PARITY
from verydeep.paper.claims.experiments._resized import RESIZED
from verydeep.paper.claims.experiments._skips import SKIPS
from verydeep.paper.claims.experiments._speed import SPEED
from verydeep.paper.claims.experiments._supervision import SUPERVISION
from verydeep.paper.claims.experiments._tables import TABLES_TEXT
from verydeep.paper.claims.experiments._thin_maxout import THIN_MAXOUT
from verydeep.paper.claims.experiments._very_deep import VERY_DEEP

EXPERIMENTS = (
    COMPETITION,
    PARITY,
    FORMS,
    RESIZED,
    GATE_BIAS,
    CONV_BIAS,
    INIT,
    ACTIVATION,
    VERY_DEEP,
    OPTIMISATION,
    LONGER,
    SPEED,
    THIN_MAXOUT,
    TABLES_TEXT,
    INSIDE,
    SUPERVISION,
    SKIPS,
    DEPTH,
)


def selected_experiments(only: str | None) -> tuple[ClaimExperiment, ...]:
    """The experiments named in a comma-separated list; by default, all."""
    known = {each.name: each for each in EXPERIMENTS}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown("experiment", name, known)
    return tuple(each for name, each in known.items() if name in names)
