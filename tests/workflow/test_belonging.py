"""An artefact of another workflow is refused, and never overwritten."""

from __future__ import annotations

import json

import pytest

from chiron.workflow.belonging import require_own, set_aside, workflow_in
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow


def test_a_profile_is_one_of_the_workflow_as_it_is(small, profile_of):
    profile = profile_of(small.workflow)
    require_own(profile, small.workflow, "profile.json")
    other = profile.model_copy(update={"workflow": "other"})
    with pytest.raises(ChironError, match=r"profile\.json is of workflow other, not of small"):
        require_own(other, small.workflow, "profile.json")


def test_a_function_that_no_payload_reaches_has_no_profile(machine, small, profile_of):
    """Only a workflow that decides may have one."""
    states = machine(A="f", W={"Type": "Wait", "Seconds": 1}, B="seldom")
    decides = parse_workflow(states, "demo")
    whole, seen = profile_of(decides), profile_of(decides).payloads[0]
    reached = seen.model_copy(update={"trace": seen.trace[:1]})
    update = {"functions": {"f": whole.functions["f"]}, "payloads": (reached,)}
    require_own(whole.model_copy(update=update), decides, "profile.json")
    none = profile_of(small.workflow).model_copy(update={"functions": {}})
    with pytest.raises(ChironError, match="the profile lacks"):
        require_own(none, small.workflow, "profile.json")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ('{"workflow": "other"}', False),
        ('{"workflow": "small"}', True),
        ('{"workflow": "../x"}', True),
        ("[]", True),
        ("no JSON", True),
    ],
)
def test_only_an_artefact_of_another_workflow_is_set_aside(text, own, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(text)
    aside = set_aside(file, "small")
    assert file.exists() == own
    assert aside == (None if own else tmp_path / "plan-other.json")
    assert aside is None or json.loads(aside.read_text()) == {"workflow": "other"}


def test_what_is_not_there_belongs_to_nobody(tmp_path):
    assert workflow_in(tmp_path / "plan.json") is None
    assert set_aside(tmp_path / "plan.json", "small") is None
