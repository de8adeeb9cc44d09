"""Versions have names of their own, and what serves is told by annotations alone."""

from __future__ import annotations

import pytest

from chiron.adaptation.version import Serving, entry_name, named, serving, version_of
from chiron.generator.annotations import ASKED, SOURCE
from chiron.generator.generate import Sources
from chiron.generator.settings import TIMEOUT_STEP_S
from chiron.openfaas.objects import FunctionStatus
from chiron.pipeline.deploy import DeploymentRequest
from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.schedule import schedule
from chiron.workflow.constraints import Constraints
from chiron.workflow.names import NAME

APART = Constraints(format=1, isolate={"wave": "wrap", "join": "wrap"})


class Listing:
    """A gateway with some functions: name -> its annotations, without their prefix."""

    def __init__(self, **functions: dict[str, str]) -> None:
        self._functions = functions

    def functions(self) -> list[FunctionStatus]:
        return [
            FunctionStatus(
                name=name,
                annotations={f"chiron.{key}": value for key, value in annotations.items()},
                env_vars={"exec_timeout": "12s"},
            )
            for name, annotations in self._functions.items()
        ]


def of(version: str, role: str = "wrap", planner: str = "pgp") -> dict[str, str]:
    mark = {"version": version} if version else {}
    return {"workflow": "w", "planner": planner, "role": role} | mark


@pytest.fixture
def plan(small, profile_of, platform):
    profile, settings = profile_of(small.workflow), FolderSettings(APART)
    return schedule(small.workflow, profile, platform, 50.0, settings=settings)


def test_all_wraps_of_a_version_have_it_in_their_names(plan, small):
    version = named(plan, "0a1b2c3d")
    names = [wrap.name for wrap in version.wraps]
    assert len(set(names)) == len(plan.wraps) > 1
    assert all(name.endswith("-0a1b2c3d") and NAME.fullmatch(name) for name in names)
    assert names[0] == entry_name(small.workflow.name, "0a1b2c3d")
    version.check_against(small.workflow)


def test_the_longest_workflow_has_room_for_a_version(plan):
    names = [
        wrap.name for wrap in named(plan.model_copy(update={"workflow": "w" * 63}), "0a").wraps
    ]
    assert len(set(names)) == len(names)
    assert all(NAME.fullmatch(name) for name in names)


def test_another_plan_or_source_is_another_version(plan):
    wraps = tuple(wrap.model_copy(update={"mechanism": "pool"}) for wrap in plan.wraps)
    other = plan.model_copy(update={"wraps": wraps})
    first, second = {SOURCE: "s", ASKED: "a"}, {SOURCE: "t", ASKED: "a"}
    made = {version_of(plan, first), version_of(other, first), version_of(plan, second)}
    assert len(made) == 3
    assert version_of(plan, first) in made


def test_the_marks_change_with_code_and_choices_and_not_with_what_python_leaves(small):
    def marks(slo_ms=50.0, **asked):
        return DeploymentRequest(small, slo_ms, **asked).marks(Sources.read(small, {}))

    first = marks()
    code = small.path / "functions" / "wave"
    (code / "__pycache__").mkdir()
    (code / "__pycache__" / "util.pyc").write_text("compiled")
    (code / ".mypy_cache").mkdir()
    (code / ".mypy_cache" / "util.json").write_text("a tool's")
    assert marks() == first
    asked = [marks(slo_ms=60.0), marks(timeout_s=5.0), marks(choices=Choices(mechanism="pool"))]
    assert {each[SOURCE] for each in asked} == {first[SOURCE]}
    assert len({each[ASKED] for each in (first, *asked)}) == 4
    for name, text in {"util.py": "def wave(text):\n    return text\n", ".env": "MODE=b\n"}.items():
        before = marks()
        (code / name).write_text(text)
        assert marks()[SOURCE] != before[SOURCE]
        assert marks()[ASKED] == before[ASKED]


def test_nothing_serves_where_there_is_no_entry_of_that_planner():
    listing = Listing(other=of("", "entry", "sand"), w2=of(""), helper={})
    assert serving(listing, "w", "pgp") is None
    assert serving(listing, "w", "sand").entry.name == "other"


def test_functions_of_other_versions_and_candidates_are_others():
    listing = Listing(
        w1=of("b", "entry"),
        w1b=of("b", "candidate"),
        w2a=of("a"),
        w2b=of("b"),
        w2=of(""),
        sand=of("a", planner="sand"),
    )
    current = serving(listing, "w", "pgp")
    assert current.version == "b"
    assert {function.name for function in current.others} == {"w1b", "w2a", "w2"}


def test_what_was_deployed_without_a_version_is_a_version_too():
    current = serving(Listing(w1=of("", "entry"), w2=of("")), "w", "pgp")
    assert (current.version, current.others, current.prediction) == ("", (), None)


def test_a_version_serves_once_its_own_entry_answers():
    listing = {"w-wrap1-b": of("b", "candidate"), "w-wrap2-a": of("a")}
    current = serving(Listing(w1=of("b", "entry"), **listing), "w", "pgp")
    assert current.is_wrap("w-wrap1-b")
    assert not any(map(current.is_wrap, ("w1", "w-wrap1-a", None)))

    unversioned = serving(Listing(w1=of("", "entry"), **listing), "w", "pgp")
    assert unversioned.is_wrap("w1")
    assert not unversioned.is_wrap("w-wrap1-b")


def test_others_drain_for_as_long_as_who_calls_them_may_take():
    entry, candidate, wrap = Listing(
        w1=of("b", "entry"), c=of("b", "candidate"), w=of("a")
    ).functions()
    assert Serving(entry, entry, (candidate,)).drain_s == 0.0
    assert Serving(entry, entry, (candidate, wrap)).drain_s == 12.0 + TIMEOUT_STEP_S
