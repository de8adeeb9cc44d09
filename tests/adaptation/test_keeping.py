"""Replicas that were set on what serves are kept; those of its plan are not."""

from __future__ import annotations

from chiron.adaptation.blue_green import replicas_set
from chiron.generator.given import GIVEN, given
from chiron.openfaas.objects import MIN_LABEL, FunctionStatus
from chiron.openfaas.stack import StackFunction
from tests.rows import each_row


@each_row(
    ("planned", "replicas", "kept"),
    [
        (None, 1, 0),
        (None, 2, 2),
        (3, 3, 0),  # as many as its plan has: the next plan has its own
        (3, 5, 5),
        (3, 2, 0),  # fewer than its plan has are no promise
        (3, 0, 0),
    ],
)
def test_replicas_above_those_of_the_plan_were_set_by_others(planned, replicas, kept):
    labels = {MIN_LABEL: str(planned)} if planned else {}
    annotations = {GIVEN: given(StackFunction(labels=labels))}
    # The label that somebody has raised since is kept as a label.
    now = FunctionStatus(
        name="w", replicas=replicas, labels={MIN_LABEL: "9"}, annotations=annotations
    )
    assert replicas_set(now) == kept
