"""Section 5: highway networks show how much depth a problem needs.

The numbers are the answers that `python benchmarks/depth_answers.py` recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from verydeep.files import read_json
from verydeep.paper._verdict import Verdict, share_verdict
from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, Evidence, PaperStatement


@dataclass(frozen=True)
class DepthAnswerOfLesions:
    """What closing layers and training again say about a problem.

    Attributes:
        name: The problem, and the seed.
        used: Layers used by the trained deep network.
        low: The lower end of the interval of the depth that is enough when trained again.
        high: Its upper end.
    """

    name: str
    used: int
    low: int
    high: int

    @property
    def agrees(self) -> bool:
        """Whether the number of layers used is in the interval."""
        return self.low <= self.used <= self.high


def needed_verdict(answers: Sequence[DepthAnswerOfLesions]) -> Verdict:
    """The verdict on the problems: lesions of a deep network name a depth that training again confirms."""
    return share_verdict(sum(answer.agrees for answer in answers), len(answers))


def _answers(folder: Path) -> list[DepthAnswerOfLesions]:
    found = []
    for file in sorted(folder.glob("*.json")):
        values = read_json(file)
        answer = values["answer"]
        if answer["used"] and answer["interval"]:
            name = f"{answer['name']}, seed {values['seed']}"
            found.append(DepthAnswerOfLesions(name, answer["used"]["used"], *answer["interval"]))
    return found


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    answers = _answers(evidence.results / "depth")
    if not answers:
        return [Conclusion()]
    good = sum(answer.agrees for answer in answers)
    others = "; ".join(f"{each.name}: {each.used}, {each.low} to {each.high}" for each in answers if not each.agrees)
    return [
        Conclusion(
            f"layers used by a trained network of 50 layers are within the interval of the depth found by training "
            f"again on {good} of {len(answers)}" + (f"; not on {others}" if others else ""),
            needed_verdict(answers),
            {each.name: {"used": each.used, "interval": [each.low, each.high]} for each in answers},
        )
    ]


DEPTH = ClaimExperiment(
    "depth",
    "the depth that problems need",
    (
        PaperStatement(
            "5",
            "Highway networks show how much depth a problem needs.",
            "For every problem and seed, the number of layers that closing layers of the trained deep network calls "
            "used is compared with the interval of the depth that is enough when networks are trained again. Agrees if "
            "it is always within, differs in part if in more than half of the cases.",
            "A deep network spreads its work over more layers than the problem needs. Closing layers shows what this "
            "network uses; only training again, as `verydeep depth` does, shows what would have been enough.",
        ),
    ),
    _conclude,
    protocol="the numbers are those of `python benchmarks/depth_answers.py`",
)
