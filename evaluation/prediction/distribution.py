"""The errors of one predictor on one workflow and mechanism: what tables and pictures show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaluation.prediction.errors import ErrorSummary
from workflow.documents import Document
from workflow.plan import Mechanism

#: What the predictor of this project is called beside the baselines.
OURS = "chiron"


class Distribution(Document):
    """The relative errors (P̂ - P) / P of one predictor, in the order of the measured rows.

    ``noise`` is how far two deployments of one plan differ on average, which no predictor can
    foresee; null where none was deployed twice.
    """

    workflow: str
    mechanism: Mechanism
    predictor: str
    errors: tuple[float, ...]
    noise: float | None = None

    @property
    def summary(self) -> ErrorSummary:
        """Mean, bias and 95th percentile."""
        return ErrorSummary.of(self.errors)

    @property
    def place(self) -> tuple[str, str]:
        """Workflow and mechanism: those of one place are drawn side by side."""
        return self.workflow, self.mechanism


def by_place(distributions: Iterable[Distribution]) -> list[list[Distribution]]:
    """Those of one workflow and mechanism together, in the order of their first appearance."""
    places: dict[tuple[str, str], list[Distribution]] = {}
    for each in distributions:
        places.setdefault(each.place, []).append(each)
    return list(places.values())


def predictors(distributions: Sequence[Distribution]) -> list[str]:
    """The names of all predictors, each once."""
    return list(dict.fromkeys(each.predictor for each in distributions))
