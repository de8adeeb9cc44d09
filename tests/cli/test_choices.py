"""What a user may choose about a plan is the same for every verb and every service that plans."""

from __future__ import annotations

from importlib import import_module

import pytest

from chiron.scheduler.choices import Choices
from chiron.services.endpoints import DeploymentBody
from chiron.services.planning import ScheduleRequest


def options_of(verb: str) -> dict[str, tuple[object, str | None]]:
    """Default and help of every option of a verb, by the name of its argument."""
    command = import_module(f"chiron.cli.{verb}").command
    return {p.name: (p.default, p.help) for p in command.params if hasattr(p, "help")}


@pytest.mark.parametrize("verb", ["schedule", "deploy"])
def test_a_verb_that_plans_has_an_option_for_every_choice(verb):
    options = options_of(verb)
    for name, field in Choices.model_fields.items():
        assert options[name] == (field.default, field.description)


@pytest.mark.parametrize("body", [ScheduleRequest, DeploymentBody])
def test_a_body_that_asks_for_a_plan_has_every_choice(body):
    properties = body.model_json_schema()["properties"]
    assert all(properties[name]["description"] for name in Choices.model_fields)


def test_deploy_refuses_a_choice_out_of_range_before_it_measures(chiron, artefacts):
    result = chiron("deploy", artefacts, "--slo=20ms", "--local", "--max-functions=0")
    assert result.status == 2
    assert "--max-functions" in result.error()
