"""Wraps are served with waitress's internals, and so with the one version that is tested."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
#: The modules of which `wrap/http/server` and `services/connections.py` override and read
#: private parts, and what their sources hash to. Where one changes, read what has changed in it,
#: look at what overrides it, and only then write the new hash here.
INTERNALS = {
    "adjustments": "f1ed00a8217a79f5",
    "buffers": "50bf15244d9056a9",
    "channel": "6b44713fd38f8917",
    "parser": "f3c294637d49ced3",
    "receiver": "e4b4903d525a6d6a",
    "server": "93fa60086cb5b979",
    "task": "fc30d7eb4fde6134",
    "utilities": "d7d243c4c848323e",
    "wasyncore": "ac7821b11b192a19",
}


@pytest.mark.parametrize("template", ["plain", "python3-wrap"])
def test_templates_and_chiron_ask_for_the_version_that_is_tested(template: str) -> None:
    tested = f"waitress=={metadata.version('waitress')}"
    listed = (ROOT / "templates" / template / "requirements.txt").read_text().split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirements in (listed, project):
        assert [line for line in requirements if Requirement(line).name == "waitress"] == [tested]


@pytest.mark.parametrize("module", INTERNALS)
def test_the_internals_that_are_overridden_are_the_known_ones(module: str) -> None:
    source = inspect.getsource(importlib.import_module(f"waitress.{module}"))
    assert hashlib.sha256(source.encode()).hexdigest()[:16] == INTERNALS[module]
