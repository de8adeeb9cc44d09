"""What of stack.yaml cannot be done is said before anything is measured or deployed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from chiron.deployment.launcher import Launcher
from chiron.openfaas.objects import FunctionStatus, GatewayInfo
from chiron.openfaas.sharing import TRIGGERS
from chiron.pipeline.deploy import DeploymentRequest, checked_sources, deploy
from chiron.scheduler.choices import Choices
from chiron.scheduler.planners import PLANNERS, first_names
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.load import Load


@dataclass
class Elsewhere:
    """A gateway of OpenFaaS at `url`, which is asked for nothing but what it is."""

    url: str
    #: The deployed functions, each with its annotations.
    deployed: dict[str, dict[str, str]] = field(default_factory=dict)
    provider: str = "faas-netes"

    def functions(self) -> list[FunctionStatus]:
        named = self.deployed.items()
        return [FunctionStatus(name=name, annotations=each) for name, each in named]

    def info(self) -> GatewayInfo:
        return GatewayInfo.model_validate({"provider": {"provider": self.provider}})


def unbuilt(stack_file):
    pytest.fail(f"the images of {stack_file} are built")


@pytest.fixture
def told(small):
    """What a deployment of the small workflow tells, with changes of its stack.yaml."""

    def told(changes, launcher, planner="sand", asked=checked_sources, load=None):
        stack = json.loads(small.stack_file.read_text())
        for name, fields in changes.pop("functions", {}).items():
            stack["functions"][name] |= fields
        small.stack_file.write_text(json.dumps(stack | changes))
        request = DeploymentRequest(small, 50.0, Choices(planner=planner), load=load)
        lines = list[str]()
        asked(request, launcher, lines.append)
        return [line for line in lines if line.startswith("warning: ")]

    return told


def test_what_has_no_effect_is_told(told):
    launcher = Launcher(Elsewhere("http://there:8080"), build=print)
    (line,) = told({"functions": {"wave": {"skip_build": True}}}, launcher)
    assert "function wave: skip_build" in line


@pytest.mark.parametrize(
    ("named", "warned"),
    [
        ("http://there:8080/", False),
        ("http://127.0.0.1:8080", False),  # faas-cli's default says nothing
        ("", False),
        ("http://other:8080", True),
    ],
)
def test_another_gateway_in_the_file_is_told(told, named, warned):
    launcher = Launcher(Elsewhere("http://there:8080"), build=print)
    lines = told({"provider": {"name": "openfaas", "gateway": named}}, launcher)
    assert [named in line and "http://there:8080" in line for line in lines] == [True] * warned


def test_on_the_embedded_gateway_the_file_may_name_any(told, launcher):
    assert told({"provider": {"name": "openfaas", "gateway": "http://other:8080"}}, launcher) == []


@pytest.mark.parametrize(
    ("provider", "per_s", "label", "warned"),
    [
        ("faas-netes-ce", 20.0, "team", "the plan for 20/s are"),
        ("faas-netes-ce", None, "com.openfaas.scale.type", "wave are"),
        ("faas-netes-ce", None, "com.openfaas.scale.min", ""),
        ("faas-netes", 20.0, "com.openfaas.scale.type", ""),
    ],
)
def test_labels_that_the_community_edition_refuses_are_told(told, provider, per_s, label, warned):
    launcher = Launcher(Elsewhere("http://there:8080", provider=provider), build=unbuilt)
    changes = {"functions": {"wave": {"labels": {label: "1"}}}}
    lines = told(changes, launcher, load=Load(per_s=per_s) if per_s else None)
    assert [warned in line and "http://there:8080 refuses" in line for line in lines] == (
        [True] if warned else []
    )


@pytest.mark.parametrize("planner", ["sand", "pgp", "one-to-one"])
def test_a_trigger_of_an_inner_function_is_refused_before_anything_is_measured(
    told, planner, tmp_path
):
    launcher = Launcher(Elsewhere("http://there:8080"), build=print)
    changes = {"functions": {"join": {"annotations": {"topic": "orders"}}}}
    if planner == "one-to-one":
        assert told(changes, launcher, planner) == []
        return
    with pytest.raises(ChironError) as refused:
        told(changes, launcher, planner, lambda *asked: deploy(*asked[:2], tmp_path, asked[2]))
    assert (refused.value.code, refused.value.functions) == ("inner-trigger", ("join",))


@pytest.mark.parametrize(
    ("planner", "name"),
    [
        ("pgp", "small-wrap1"),
        ("pgp", "helper"),
        ("faastlane+", "small-faastlane-plus-wrap1"),
        ("one-to-one", "small-wave"),
    ],
)
def test_a_name_of_another_workflow_is_refused_before_anything_is_measured(
    told, planner, name, small, tmp_path
):
    whose = {"chiron.workflow": "other", "chiron.planner": planner}
    launcher = Launcher(Elsewhere("http://there:8080", {name: whose}), build=unbuilt)
    stack = json.loads(small.stack_file.read_text())
    stack["functions"]["helper"] = {**stack["functions"]["wave"], "image": "helper"}
    small.stack_file.write_text(json.dumps(stack))
    with pytest.raises(ChironError, match="run chiron remove other") as refused:
        told({}, launcher, planner, lambda *asked: deploy(*asked[:2], tmp_path, asked[2]))
    assert (refused.value.code, refused.value.functions) == ("name-taken", (name,))


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_names_of_the_first_wraps_are_known_without_a_profile(planner, plan_of):
    names = "abcdefg"
    workflow = parse_workflow({"tasks": dict(zip(names, names, strict=True)), "edges": []})
    names = [wrap.name for wrap in plan_of(workflow, planner).wraps]
    known = first_names(planner, workflow)
    assert known and known == names[: len(known)]


def test_a_name_of_another_workflow_is_refused_before_images_are_built(small, plan_of):
    plan = plan_of(small.workflow, "sand")
    whose = {"chiron.workflow": "other", "chiron.planner": "sand"}
    launcher = Launcher(Elsewhere("http://there:8080", {plan.wraps[0].name: whose}), unbuilt)
    with (
        pytest.raises(ChironError, match="run chiron remove other"),
        launcher.launch(small.workflow, small, plan),
    ):
        pytest.fail("it is deployed")


def test_connectors_do_not_call_what_is_deployed_to_be_measured(
    write_folder, plan_of, launcher, tmp_path
):
    handler = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path / "f",
        {"name": "measured", "tasks": {"t": "wave"}},
        {"wave": handler},
        {},
        {"wave": {"annotations": {"topic": "orders", "team": "a"}}},
    )
    plan = plan_of(folder.workflow, "sand")
    with launcher.launch(folder.workflow, folder, plan) as deployed:
        (name,) = deployed.names
        found = launcher.gateway.describe(name).annotations
    assert found["team"] == "a"
    assert not TRIGGERS & found.keys()
