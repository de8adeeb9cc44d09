"""Images for gateways that pull them: what faas-cli is asked for, and what it says."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from cli.publish import publish
from generator.generate import Sources, generate
from openfaas.stack import read_stack
from workflow.errors import ChironError

REGISTRY = "registry.example:5000/team"


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Puts a faas-cli before all others; what it has been asked for, in which folder."""
    log, folder = tmp_path / "calls", tmp_path / "bin"
    folder.mkdir()
    script = folder / "faas-cli"

    def install(last_words="", status=0):
        script.write_text(
            f'#!/bin/sh\necho "$PWD: $*" >> {shlex.quote(str(log))}\n'
            f"printf %s {shlex.quote(last_words)}\nexit {status}\n"
        )
        script.chmod(0o755)
        return lambda: log.read_text().splitlines() if log.exists() else []

    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return install


@pytest.fixture
def stack_file(small, plan_of, tmp_path):
    sources = Sources.read(small, {"OPENFAAS_PREFIX": f"{REGISTRY}/"})
    return generate(plan_of(small.workflow), sources, tmp_path / "build")


def test_images_are_built_and_pushed_where_the_stack_is(calls, stack_file):
    asked = calls()
    publish(stack_file)
    folder = stack_file.parent
    assert asked() == [f"{folder}: build -f stack.yaml", f"{folder}: push -f stack.yaml"]


def test_all_images_name_the_registry(stack_file):
    images = [function.image for function in read_stack(stack_file, {}).functions.values()]
    assert images
    assert all(image.startswith(f"{REGISTRY}/small-") for image in images)


def test_a_template_that_is_not_there_is_fetched_first(calls, write_folder, plan_of, tmp_path):
    handler = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path / "f", {"tasks": {"t": "wave"}}, {"wave": handler, "helper": handler}, {},
        {"helper": {"image": "elsewhere.example/helper:1"}},
    )  # fmt: skip
    sources = Sources.read(folder, {"OPENFAAS_PREFIX": REGISTRY})
    built = generate(plan_of(folder.workflow), sources, tmp_path / "build")
    assert read_stack(built, {}).function("helper").image == "elsewhere.example/helper:1"
    asked = calls()
    publish(built)
    assert asked()[0] == f"{built.parent}: template store pull python3-flask"
    assert len(asked()) == 3


def test_what_faas_cli_says_is_repeated(calls, stack_file):
    asked = calls("Building...\n#8 ERROR: no such base image\n", status=1)
    with pytest.raises(ChironError, match=r"build -f stack.yaml failed: .*no such base") as caught:
        publish(stack_file)
    assert caught.value.code == "build-failed"
    assert len(asked()) == 1


def test_without_a_registry_nothing_is_built(calls, small, plan_of, tmp_path):
    asked = calls()
    built = generate(plan_of(small.workflow), Sources.read(small, {}), tmp_path / "build")
    with pytest.raises(ChironError, match="OPENFAAS_PREFIX") as caught:
        publish(built)
    assert caught.value.code == "no-registry"
    assert asked() == []


def test_without_faas_cli_it_is_said_how_to_get_it(stack_file, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChironError, match="make faas-cli") as caught:
        publish(stack_file)
    assert caught.value.code == "no-builder"


@pytest.mark.parametrize("prefix", ["UPPER", "a b", "$(id)", "a//b", "-a", "a\nb", "${HOME}"])
def test_what_cannot_be_a_registry_is_refused(small: Path, prefix):
    with pytest.raises(ChironError) as caught:
        Sources.read(small, {"OPENFAAS_PREFIX": prefix})
    assert caught.value.code == "bad-prefix"
