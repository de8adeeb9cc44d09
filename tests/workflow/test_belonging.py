"""An artefact of another workflow is refused, and never overwritten."""

from __future__ import annotations

import json

import pytest

from chiron.workflow.belonging import require_own, set_aside, workflow_in
from chiron.workflow.errors import ChironError


def test_a_profile_is_one_of_the_workflow_as_it_is(small, profile_of):
    profile = profile_of(small.workflow)
    require_own(profile, small.workflow, "profile.json")
    other = profile.model_copy(update={"workflow": "other"})
    with pytest.raises(ChironError, match=r"profile\.json is of workflow other, not of small"):
        require_own(other, small.workflow, "profile.json")


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
