"""Replicas that were set on what serves are kept; those of its plan are not."""

from __future__ import annotations

from time import sleep

from requests import Response

from chiron.adaptation.blue_green import BlueGreen, replicas_set
from chiron.adaptation.version import VERSION, Candidate, Serving
from chiron.generator.annotations import PLANNER, WORKFLOW
from chiron.generator.given import GIVEN, given
from chiron.openfaas.objects import MIN_LABEL, FunctionSpec, FunctionStatus
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


class Lagging:
    """A gateway whose descriptions lag behind: a deployment has the replicas of its label."""

    def __init__(self, before: FunctionStatus) -> None:
        self.now, self.told = before, [before, before]

    def deploy(self, spec: FunctionSpec) -> None:
        fields = {"annotations": spec.annotations, "labels": spec.labels}
        self.now = self.now.model_copy(update={"replicas": 1, "available_replicas": 1, **fields})

    def describe(self, _name: str) -> FunctionStatus:
        return self.told.pop() if self.told else self.now

    def scale(self, _name: str, replicas: int) -> None:
        fields = {"replicas": replicas, "available_replicas": replicas}
        self.now = self.now.model_copy(update=fields)

    def get(self, _name: str, _path: str, _timeout_s: float) -> Response:
        answer = Response()
        answer.status_code, answer._content = 200, b"w-wrap1-new"
        return answer

    def functions(self) -> list[FunctionStatus]:
        return []


def test_replicas_are_kept_though_the_gateway_tells_them_as_before_the_switch():
    """faas-netes sets a function's replicas to its label, and tells them from a cache."""
    marks = {WORKFLOW: "w", PLANNER: "pgp", GIVEN: given(StackFunction(labels={MIN_LABEL: "1"}))}
    annotations, labels = {**marks, VERSION: "old"}, {MIN_LABEL: "1"}
    called = FunctionStatus(name="w-wrap1", replicas=3, labels=labels, annotations=annotations)
    gateway = Lagging(called)
    entry = FunctionSpec(
        service="w-wrap1-new", image="w", labels=labels, annotations={**marks, VERSION: "new"}
    )
    candidate = Candidate("new", entry, [], 1.0, None, {"w-wrap1-new": called})
    events = []
    old = Serving(called, called, ())
    BlueGreen(gateway, sleep, events.append).switch(candidate, "w-wrap1", old)
    assert gateway.now.replicas == 3
    assert [event.kind for event in events] == ["switched"]
