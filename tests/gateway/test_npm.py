"""What functions in Node.js ask for in their package.json is installed beside their handlers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from chiron.gateway.npm import install
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm: install Node.js 20")


def function(folder: Path, name: str, package: str) -> Path:
    place = folder / "functions" / name / "function"
    place.mkdir(parents=True)
    (place / "package.json").write_text(package)
    return place


@needs_npm
def test_each_function_has_the_dependencies_of_its_own(tmp_path):
    said, own = list[str](), json.dumps({"dependencies": {"own": "file:./own"}})
    places = {name: function(tmp_path, name, own) for name in "ab"}
    for name, place in places.items():
        (place / "own").mkdir()
        (place / "own" / "package.json").write_text('{"name": "own", "version": "1.0.0"}')
        (place / "own" / "index.js").write_text(f"module.exports = {name!r}")
    without = function(tmp_path, "c", '{"name": "c"}')
    install("wrap", tmp_path, said.append)
    for name, place in places.items():
        assert name in (place / "node_modules" / "own" / "index.js").read_text()
    assert [path.name for path in without.iterdir()] == ["package.json"]
    assert [line.split()[3] for line in said] == ["a", "b"]


@needs_npm
def test_an_old_lock_file_and_packages_of_another_machine_are_no_hindrance(tmp_path):
    """As in the template, which runs npm install without the handler folder's node_modules."""
    place = function(tmp_path, "a", json.dumps({"dependencies": {"own": "file:./own"}}))
    (place / "package-lock.json").write_text('{"lockfileVersion": 3, "packages": {"": {}}}')
    for folder, text in (("own", "new"), ("node_modules/own", "old"), ("node_modules/more", "old")):
        (place / folder).mkdir(parents=True)
        (place / folder / "package.json").write_text('{"name": "own", "version": "1.0.0"}')
        (place / folder / "index.js").write_text(text)
    install("wrap", tmp_path, print)
    assert (place / "node_modules" / "own" / "index.js").read_text() == "new"
    assert not (place / "node_modules" / "more").exists()


@needs_npm
def test_the_build_of_an_image_installs_the_same(tmp_path):
    """Its command in sh, without a change of owners."""
    dockerfile = (TEMPLATES / "python3-wrap" / "Dockerfile").read_text().replace("\\\n", "")
    (line,) = [line for line in dockerfile.splitlines() if "npm install" in line]
    command = line.removeprefix("RUN").replace("/home/app", str(tmp_path))
    (tmp_path / "chown").write_text('#!/bin/sh\ntest -d "$3"\n')
    (tmp_path / "chown").chmod(0o755)
    for name, package in (
        ("a", {"dependencies": {}}),
        ("b", {"dependencies": {"own": "file:./own"}}),
        ("c", {}),
    ):
        place = function(tmp_path / "function", name, json.dumps(package))
        (place / "own").mkdir()
        (place / "own" / "package.json").write_text('{"name": "own", "version": "1.0.0"}')
        (place / "package-lock.json").write_text('{"lockfileVersion": 3, "packages": {"": {}}}')
    given = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=given, check=True)
    assert [each.parents[1].parent.name for each in tmp_path.rglob("node_modules/own")] == ["b"]


@needs_npm
def test_what_npm_cannot_install_is_told_in_its_words(tmp_path):
    function(tmp_path, "a", json.dumps({"dependencies": {"own": "file:./nowhere.tgz"}}))
    with pytest.raises(ChironError, match=r"npm says: .*nowhere") as raised:
        install("wrap", tmp_path, print)
    assert raised.value.code == "npm-failed"


def test_a_package_json_that_is_none_is_refused(tmp_path):
    function(tmp_path, "a", "{")
    with pytest.raises(ChironError, match=r"function wrap: package\.json of a is none"):
        install("wrap", tmp_path, print)


def test_where_there_is_no_npm_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    function(tmp_path, "a", '{"dependencies": {"own": "1"}}')
    with pytest.raises(ChironError, match="npm, which is not installed here"):
        install("wrap", tmp_path, print)
