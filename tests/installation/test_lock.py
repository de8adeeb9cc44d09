"""requirements.lock pins all that chiron runs with, as pyproject.toml asks, each file by a hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.rows import each_row

ROOT = Path(__file__).parents[2]
PIN = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+) \\\n"  # a name and a version
    r"((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def pins():
    """Name -> pinned version."""
    text = (ROOT / "requirements.lock").read_text()
    return {canonicalize_name(name): version for name, version, _ in PIN.findall(text)}


def asked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [*project["project"]["dependencies"], *project["build-system"]["requires"]]


@each_row("dependency", asked())
def test_every_dependency_is_pinned_as_it_is_asked_for(pins, dependency):
    requirement = Requirement(dependency)
    pinned = pins.get(canonicalize_name(requirement.name))

    assert pinned, "run make lock"
    assert requirement.specifier.contains(pinned), "run make lock"


def test_every_line_is_a_pin_a_hash_or_a_comment(pins):
    text = (ROOT / "requirements.lock").read_text()

    rest = [line for line in PIN.sub("", text).splitlines() if not line.lstrip().startswith("#")]
    assert [line for line in rest if line] == []
    assert len(pins) > len(asked())
