"""Whose secrets others in a wrap can read is said in the plan, by name and never by value."""

from __future__ import annotations

import pytest

from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import FolderSettings, read_settings
from chiron.scheduler.schedule import schedule
from chiron.workflow.constraints import Constraints


def told(plan) -> list[str]:
    return [line for line in plan.why if "secret" in line]


def test_secrets_that_others_of_the_wrap_get_are_listed_with_their_owners(
    workflow, profile, platform
):
    functions = profile(a="cpu 1", b="cpu 1", c="cpu 1")
    settings = FolderSettings(secrets={"a": ("key", "salt"), "b": ("token",)})
    plan = schedule(workflow("a b c"), functions, platform(), 99.0, settings=settings)
    assert told(plan) == [
        "demo-wrap1 gives the secrets key, salt, token of a, b to all its functions: "
        "isolate in constraints.json keeps one to a wrap of its own"
    ]


@pytest.mark.parametrize("secrets", [{}, {"a": ("key",), "b": ("key",)}, {"elsewhere": ("key",)}])
def test_nothing_is_said_where_nobody_gets_more_than_before(workflow, profile, platform, secrets):
    plan = schedule(
        workflow("a b", "a"),
        profile(a="cpu 1", b="cpu 1"),
        platform(),
        99.0,
        settings=FolderSettings(secrets=secrets),
    )
    assert told(plan) == []


def test_a_function_in_a_wrap_of_its_own_keeps_its_secrets(workflow, profile, platform):
    plan = schedule(
        workflow("a b"),
        profile(a="cpu 1", b="cpu 1"),
        platform(),
        99.0,
        settings=FolderSettings(
            Constraints(format=1, isolate={"a": "wrap"}), secrets={"a": ("key",)}
        ),
    )
    assert len(plan.wraps) == 2 and told(plan) == []


@pytest.mark.parametrize("planner", ["faastlane", "one-to-one"])
def test_fixed_planners_say_it_too(workflow, profile, platform, planner):
    known, functions = workflow("a b"), profile(a="cpu 1", b="cpu 1")
    settings = FolderSettings(secrets={"a": ("key",)})
    plan = schedule(known, functions, platform(), 99.0, Choices(planner=planner), settings=settings)
    assert len(told(plan)) == (planner == "faastlane")


def test_secrets_are_those_of_the_stack_file(write_folder, tmp_path):
    folder = write_folder(tmp_path / "w", fields={"split": {"secrets": ["key", "${SALT}"]}})
    assert read_settings(folder, {"SALT": "salt"}).secrets == {"split": ("key", "salt")}


def test_a_folder_without_stack_file_has_none(small):
    small.stack_file.unlink()
    assert read_settings(small, {}).secrets == {}
