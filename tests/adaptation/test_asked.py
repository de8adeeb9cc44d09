"""What the next plan is made for: what was asked, else what serves was made for, or more."""

from __future__ import annotations

from typing import cast

import pytest

from chiron.adaptation.rules import Window, asked_now
from chiron.generator.annotations import DeployedPrediction
from chiron.pipeline.deploy import DeploymentRequest
from chiron.scheduler.choices import Choices
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load, LoadLatency
from chiron.workflow.plan import Within

WITHIN = Within(percentile=99, ms=50.0, low_ms=40.0, high_ms=60.0)
ALONE = DeployedPrediction(cpus=1, latency_ms=40.0, low_ms=30.0, high_ms=50.0, within=WITHIN)
AT_20 = ALONE.model_copy(update={"under_load": LoadLatency(load=Load(per_s=20.0), within=())})


def arriving(per_s: float) -> list[Window]:
    return [Window(10, 40.0, arrived=60 * per_s, seconds=60.0)] * 3


@pytest.mark.parametrize(
    ("asked", "serves", "seen", "planned"),
    [
        (None, None, 50.0, None),
        (None, ALONE, 50.0, None),  # it was made for single requests
        (None, AT_20, 5.0, 20.0),
        (None, AT_20, 20.5, 20.0),  # which may be chance
        (None, AT_20, 50.0, 50.0),
        (10.0, AT_20, 5.0, 10.0),
        (10.0, AT_20, 15.0, 15.0),
        (30.0, ALONE, 5.0, 30.0),
        (30.0, None, 5.0, 30.0),
    ],
)
def test_the_rate_is_the_one_asked_for_or_deployed_for_or_measured(asked, serves, seen, planned):
    load = Load(per_s=asked) if asked else None
    request = DeploymentRequest(cast(WorkflowFolder, None), 100.0, load=load)
    now = asked_now(request, serves, arriving(seen), own_percentile=True)
    assert (now.load and now.load.per_s) == planned
    assert now.choices == request.choices


@pytest.mark.parametrize(
    ("serves", "own", "percentile"), [(AT_20, False, 99), (AT_20, True, 90), (None, False, 90)]
)
def test_the_percentile_is_that_of_what_serves_unless_another_was_asked_for(
    serves, own, percentile
):
    choices = Choices(percentile=90)
    request = DeploymentRequest(cast(WorkflowFolder, None), 100.0, choices)
    assert asked_now(request, serves, [], own_percentile=own).choices.percentile == percentile
