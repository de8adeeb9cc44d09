"""Images for gateways that pull them: what faas-cli is asked for, and what it says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from chiron.deployment.publish import publish
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.workflow.errors import ChironError

pytestmark = pytest.mark.usefixtures("without_template")
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
    folder, names = stack_file.parent, list(read_stack(stack_file, {}).functions)
    assert asked() == [
        f"{folder}: {verb} -f stack.yaml --filter {name}"
        for verb in ("build", "push")
        for name in names
    ]


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
    assert len(asked()) == 1 + 2 * len(read_stack(built, {}).functions)


def test_a_template_of_a_named_source_is_left_to_faas_cli(calls, write_folder, plan_of, tmp_path):
    handler = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path / "f", {"tasks": {"t": "wave"}}, {"wave": handler, "helper": handler}, {},
        {"helper": {"lang": "mine", "image": "elsewhere.example/helper:1"}},
    )  # fmt: skip
    source = {"name": "mine", "source": "https://example.com/templates"}
    stack = json.loads(folder.stack_file.read_text())
    folder.stack_file.write_text(json.dumps(stack | {"configuration": {"templates": [source]}}))
    sources = Sources.read(folder, {"OPENFAAS_PREFIX": REGISTRY})
    asked = calls()
    publish(generate(plan_of(folder.workflow), sources, tmp_path / "build"))
    assert not any("store pull" in call for call in asked())


def test_what_faas_cli_says_is_repeated_without_colours_and_with_the_function(calls, stack_file):
    asked = calls(
        "\x1b[33mBuilding\x1b[0m\n\x1b[1;31m#8 ERROR\x1b[K: no such base image\n", status=1
    )
    with pytest.raises(ChironError) as caught:
        publish(stack_file)
    (name,) = caught.value.functions
    assert caught.value.code == "build-failed"
    assert caught.value.message == (
        f"image of {name}: faas-cli build -f stack.yaml --filter {name} failed: "
        "Building / #8 ERROR: no such base image"
    )
    assert len(asked()) == 1


def test_a_template_that_cannot_be_fetched_names_the_functions_that_need_it(calls, stack_file):
    shutil.rmtree(stack_file.parent / "template")
    calls("no such host", status=1)
    with pytest.raises(ChironError, match="template store pull python3-wrap") as caught:
        publish(stack_file)
    assert set(caught.value.functions) == set(read_stack(stack_file, {}).functions)


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
