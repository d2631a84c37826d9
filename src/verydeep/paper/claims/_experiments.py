"""All experiments, in the order of the paper, and the statements that none of them tests yet."""

from verydeep.errors import unknown
from verydeep.paper.claims._activation import ACTIVATION
from verydeep.paper.claims._competition import COMPETITION
from verydeep.paper.claims._experiment import ClaimExperiment
from verydeep.paper.claims._forms import FORMS
from verydeep.paper.claims._gate_bias import GATE_BIAS
from verydeep.paper.claims._init import INIT
from verydeep.paper.claims._inside import INSIDE
from verydeep.paper.claims._optimisation import OPTIMISATION
from verydeep.paper.claims._skips import SKIPS
from verydeep.paper.claims._speed import SPEED
from verydeep.paper.claims._supervision import SUPERVISION
from verydeep.paper.claims._tables import TABLES_TEXT
from verydeep.paper.claims._very_deep import VERY_DEEP

EXPERIMENTS = (
    COMPETITION,
    FORMS,
    GATE_BIAS,
    INIT,
    ACTIVATION,
    VERY_DEEP,
    OPTIMISATION,
    SPEED,
    TABLES_TEXT,
    INSIDE,
    SUPERVISION,
    SKIPS,
)
UNTESTED = (  # the section, and what it says
    ("1", "A tiny recurrent network learns the parity of strings of any length."),
    ("2.1", "A layer may change its size with sub-sampled or zero-padded inputs on the carry path."),
    ("2.2", "Gate biases of -1, -2 and -3 suit convolutional networks of about 10, 20 and 30 layers."),
    ("3.3.2", "The 19-layer network competes with the best of its time on CIFAR-10 and CIFAR-100."),
    ("5", "Highway networks show how much depth a problem needs."),
)


def selected_experiments(only: str | None) -> tuple[ClaimExperiment, ...]:
    """The experiments named in a comma-separated list; by default, all."""
    known = {each.name: each for each in EXPERIMENTS}
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown("experiment", name, known)
    return tuple(each for name, each in known.items() if name in names)
