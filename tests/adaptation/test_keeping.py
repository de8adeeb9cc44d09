"""What somebody has set on a function stays on the one in its place; what we gave it does not."""

from __future__ import annotations

import pytest

from chiron.adaptation.keeping import keeping, merged
from chiron.generator.annotations import GIVEN, WORKFLOW, given
from chiron.openfaas.objects import FunctionStatus
from chiron.openfaas.stack import StackFunction


@pytest.mark.parametrize(
    ("new", "now", "kept"),
    [
        ({"team": "a"}, {"team": "a"}, {"team": "a"}),
        ({"team": "b"}, {"team": "a"}, {"team": "b"}),  # the stack.yaml has changed
        ({"team": "a"}, {"team": "mine"}, {"team": "mine"}),  # somebody has changed it
        ({"team": "b"}, {"team": "mine"}, {"team": "mine"}),  # both have
        ({"team": "a"}, {"team": "a", "tier": "gold"}, {"team": "a", "tier": "gold"}),
        ({"team": "a"}, {}, {}),  # somebody has removed it
        ({}, {"team": "a"}, {}),  # the stack.yaml has no more of it
    ],
)
def test_what_others_have_set_wins_over_what_was_given(
    new: dict[str, str], now: dict[str, str], kept: dict[str, str]
) -> None:
    assert merged(new, {"team": "a"}, now) == kept


def function(**fields: object) -> StackFunction:
    return StackFunction.model_validate(
        {"lang": "python3-wrap", "handler": "./w", "image": "w:latest", **fields}
    )


def test_marks_of_ours_and_labels_of_providers_are_not_handed_on() -> None:
    before = FunctionStatus(
        name="f-wrap2",
        labels={"faas_function": "f-wrap2", "uid": "1", "tier": "gold"},
        annotations={WORKFLOW: "f", GIVEN: given({}, {}), "note": "mine"},
    )
    after = keeping(function(annotations={WORKFLOW: "g", GIVEN: given({}, {})}), before)
    assert after.labels == {"tier": "gold"}
    assert after.annotations == {WORKFLOW: "g", GIVEN: given({}, {}), "note": "mine"}


def test_without_a_record_nothing_is_taken_for_set_by_others() -> None:
    before = FunctionStatus(name="f-wrap2", labels={"tier": "gold"}, annotations={"note": "mine"})
    assert keeping(function(labels={"team": "a"}), before) == function(labels={"team": "a"})
