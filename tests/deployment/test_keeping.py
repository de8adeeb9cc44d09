"""What somebody has set on a wrap stays on the wrap in its place; what we gave it does not."""

from __future__ import annotations

import pytest

from chiron.adaptation.blue_green import as_it_was
from chiron.deployment.keeping import (
    keep_all_changes,
    keep_changes,
    lost_change_warnings,
    merge_settings,
    orphaned_change_warnings,
)
from chiron.generator.annotations import FUNCTIONS, ROUTE, WORKFLOW
from chiron.generator.given import GIVEN, given, given_of
from chiron.openfaas.objects import TARGET_LABEL, TYPE_LABEL, FunctionStatus
from chiron.openfaas.stack import StackFile, StackFunction
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError


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
    assert merge_settings(new, {"team": "a"}, now) == kept


def function(runs: str = "f", **fields: object) -> StackFunction:
    base = {"lang": "python3-wrap", "handler": "./w", "image": "w:latest"}
    made = StackFunction.model_validate(base | fields)
    return made.model_copy(update={"annotations": {FUNCTIONS: runs, **made.annotations}})


def deployed(made: StackFunction, **by_hand: object) -> FunctionStatus:
    """What a gateway says of `made`, some fields of which somebody has set."""
    fields: dict[str, object] = {
        "labels": {**made.labels},
        "annotations": {**made.annotations, GIVEN: given(made)},
        "env_vars": {**made.environment},
        "constraints": made.constraints,
        "secrets": made.secrets,
        "limits": made.limits and made.limits.model_dump(),
        "requests": made.requests and made.requests.model_dump(),
        "read_only_root_filesystem": made.readonly_root_filesystem,
    }
    return FunctionStatus.model_validate({"name": "w-wrap1"} | fields | by_hand)


def planned(runs: str = "f", memory: str = "256Mi", cpu: str = "1") -> StackFunction:
    return function(
        runs,
        environment={"WRAP_MEMORY_MIB": memory.removesuffix("Mi"), "mode": "plain"},
        secrets=("token",),
        constraints=("zone == a",),
        limits={"memory": memory, "cpu": cpu},
        requests={"memory": "128Mi", "cpu": "100m"},
    )


def test_marks_of_ours_and_labels_of_providers_are_not_handed_on() -> None:
    before = deployed(
        function(annotations={WORKFLOW: "f"}),
        labels={"faas_function": "f-wrap2", "uid": "1", "tier": "gold"},
        annotations={WORKFLOW: "f", FUNCTIONS: "f", GIVEN: given(function()), "note": "mine"},
    )
    after = keep_changes(function(annotations={WORKFLOW: "g", GIVEN: "new"}), before)
    assert after.labels == {"tier": "gold"}
    assert after.annotations == {FUNCTIONS: "f", WORKFLOW: "g", GIVEN: "new", "note": "mine"}


def test_without_a_record_nothing_is_taken_for_set_by_others() -> None:
    before = FunctionStatus(name="f-wrap2", labels={"tier": "gold"}, annotations={"note": "mine"})
    assert keep_changes(function(labels={"team": "a"}), before) == function(labels={"team": "a"})
    strange = before.model_copy(update={"annotations": {GIVEN: '{"labels": {}}'}})
    assert keep_changes(function(labels={"team": "a"}), strange) == function(labels={"team": "a"})


def test_what_nobody_has_touched_is_that_of_the_new_plan() -> None:
    new = planned(memory="512Mi", cpu="2")
    assert keep_changes(new, deployed(planned())) == new
    # Kubernetes writes quantities and selectors in its own way.
    written = {"limits": {"memory": "0.25Gi", "cpu": "1000m"}, "constraints": ["zone=a"]}
    assert keep_changes(new, deployed(planned(), **written)) == new


@pytest.mark.parametrize(
    "left_out",
    [{"env_vars": {}}, {"limits": None}, {"requests": None}, {"constraints": []}, {"secrets": []}],
    ids=str,
)
def test_what_a_provider_does_not_tell_counts_as_unchanged(left_out: dict[str, object]) -> None:
    new = planned(memory="512Mi")
    assert keep_changes(new, deployed(planned(), **left_out)) == new


def test_everything_that_was_set_by_hand_stays() -> None:
    before = deployed(
        planned(),
        env_vars={"WRAP_MEMORY_MIB": "256", "mode": "verbose", "debug": "1", ROUTE: "old"}
        | {"OPENFAAS_NAME": "w"},
        secrets=["token", "extra", "chiron-direct"],
        constraints=["zone == a", "disk=ssd"],
        limits={"memory": "1Gi", "cpu": "1"},
        requests={"memory": "128Mi", "cpu": "500m"},
        read_only_root_filesystem=True,
    )
    after = keep_changes(planned(memory="512Mi", cpu="2"), before)
    assert after.environment == {"WRAP_MEMORY_MIB": "1024", "mode": "verbose", "debug": "1"}
    assert after.secrets == ("token", "extra")
    assert after.constraints == ("zone == a", "disk=ssd")
    assert after.limits and (after.limits.memory_mib, after.limits.millicores) == (1024, 2000)
    assert after.requests and after.requests.millicores == 500
    assert after.readonly_root_filesystem


def test_no_limit_is_kept_below_the_new_request() -> None:
    before = deployed(planned(), limits={"memory": "64Mi", "cpu": "1"})
    after = keep_changes(planned(), before)
    assert after.limits and after.limits.memory_mib == 128
    assert after.environment["WRAP_MEMORY_MIB"] == "128"


def test_what_belongs_to_the_functions_inside_is_not_given_to_others_and_that_is_told() -> None:
    before = deployed(planned(), limits={"memory": "1Gi", "cpu": "1"}, labels={"tier": "gold"})
    stack = StackFile(functions={"w-wrap1-b": planned("f,g", "512Mi")})
    after = keep_all_changes(stack, {"w-wrap1-b": before}).functions["w-wrap1-b"]
    assert after.limits == planned("f,g", "512Mi").limits
    assert after.labels == {"tier": "gold"}
    (line,) = lost_change_warnings(stack, {"w-wrap1-b": before})
    assert line.startswith("w-wrap1-b runs other functions than w-wrap1, whose limits somebody")
    assert list(lost_change_warnings(stack, {"w-wrap1-b": deployed(planned())})) == []


def test_what_was_set_on_a_wrap_that_has_no_successor_is_told() -> None:
    untouched = deployed(planned())
    touched = [{"limits": {"memory": "1Gi", "cpu": "1"}}, {"labels": {"tier": "gold"}}]
    touched += [{"secrets": ["token", "extra"]}, {"constraints": ["zone == a", "disk=ssd"]}]
    for fields in touched:
        (line,) = orphaned_change_warnings([untouched, deployed(planned(), **fields)])
        assert line == "nothing takes the place of w-wrap1, so what somebody has set there is gone"


def test_labels_that_the_community_edition_refuses_were_removed_by_nobody() -> None:
    scaled = function(labels={TYPE_LABEL: "rps", TARGET_LABEL: "20", "team": "a"})
    before = deployed(scaled, labels={"team": "a"})
    assert keep_changes(scaled, before) == scaled
    assert list(orphaned_change_warnings([before])) == []


def test_no_record_of_more_variables_than_faasd_has_room_for() -> None:
    many = function(environment={f"variable_{number}": "x" for number in range(200)})
    told = given(many)
    assert len(told) < 3900
    found = given_of({GIVEN: told})
    assert found and found.environment is None
    assert keep_changes(many, deployed(many, env_vars={"other": "1"})) == many


def test_variables_are_not_taken_from_a_provider_that_cuts_their_values() -> None:
    """As faasd does, which tells those of the image, too."""
    made = function(environment={"HEADERS": "key=value", "MODE": "on"})
    told = {"HEADERS": "key", "MODE": "on", "LANG": "C.UTF-8", "upstream_url": "http://x"}
    before = deployed(made, env_vars=told)
    assert keep_changes(made, before) == made
    with pytest.raises(ChironError, match="only the beginning of HEADERS;"):
        as_it_was(before)
    whole = deployed(made, env_vars={"HEADERS": "key=other", "MODE": "on"})
    assert keep_changes(made, whole).environment["HEADERS"] == "key=other"
    assert as_it_was(whole).env_vars["HEADERS"] == "key=other"
    assert "upstream_url=" in (TEMPLATES / "python3-wrap" / "Dockerfile").read_text()
