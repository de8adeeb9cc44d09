"""What is compared is planned as the run's settings say."""

from __future__ import annotations

import pytest

from chiron.evaluation.bench.settings import QUICK, Settings
from chiron.evaluation.bench.setup import PROFILE_FILE, Place, prepare
from chiron.workflow.documents import dump, write_atomically


@pytest.mark.parametrize("trigger", ["stage", "data"])
def test_all_plans_have_the_trigger_of_the_run_but_those_that_a_client_drives(
    trigger, small, profile_of, platform, tmp_path
):
    write_atomically(tmp_path / PROFILE_FILE, dump(profile_of(small.workflow)))
    settings = Settings(
        planners=("one-to-one", "sand", "pgp"),
        mechanisms=("fork",),
        trigger=trigger,
        slo_ms=500.0,
        check=False,
    )
    place = Place(None, platform, lambda _: None)
    plans = prepare(small, place, tmp_path, settings, QUICK).plans
    assert {label: plan.trigger for label, plan in plans.items()} == {
        "one-to-one": "stage",
        "sand fork": trigger,
        "pgp fork": trigger,
    }
