"""The request for the plan that is to replace the serving plan: a pure rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chiron.adaptation.rules import Window, exceeding_per_s
from chiron.generator.annotations import DeployedPrediction
from chiron.pipeline.deploy import DeploymentRequest


def asked_now(
    request: DeploymentRequest,
    serves: DeployedPrediction | None,
    windows: Sequence[Window],
    *,
    own_percentile: bool,
) -> DeploymentRequest:
    """Return `request` with the rate and the percentile of the next plan.

    A `request` without a load gets the load of the plan that `serves`. Without its `own_percentile`
    it gets that plan's percentile. The rate is the arrival rate in the last `windows`, if that is
    surely higher.
    """
    load, choices = request.load, request.choices
    if serves is not None:
        if load is None and serves.under_load is not None:
            load = serves.under_load.load
        if not own_percentile and serves.within is not None:
            choices = choices.model_copy(update={"percentile": serves.within.percentile})
    if load is not None and load.per_s is not None:
        more = exceeding_per_s(windows, load.per_s)
        load = load.model_copy(update={"per_s": more}) if more else load
    return replace(request, load=load, choices=choices)
