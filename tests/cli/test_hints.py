"""What a verb says comes next works next, with the variables that are set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chiron.workflow.platform import PathCost
from tests.serving import Answering, served

pytestmark = pytest.mark.usefixtures("without_template")
REGISTRY = "registry.example:5000/team"


@pytest.fixture
def gateway(request) -> Iterator[str]:
    """A gateway of which nothing is known but its provider, or the status that it answers with."""
    told = {"provider": {"provider": request.param}}

    class Handler(Answering):
        def do_GET(self) -> None:
            self.answer(200 if isinstance(request.param, str) else request.param, told)

    with served(Handler) as url:
        yield url


@pytest.fixture
def faas_cli(environment, tmp_path) -> Path:
    """A file of what a faas-cli that comes before all others was asked for, and in which folder."""
    log, script = tmp_path / "asked", tmp_path / "bin" / "faas-cli"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$PWD: $*" >> "{log}"\n')
    script.chmod(0o755)
    environment["PATH"] = f"{script.parent}:{environment['PATH']}"
    return log


@pytest.fixture
def generated(chiron, planned):
    """Makes build/; what was said to come next."""

    def generate(**variables: str) -> str:
        result = chiron("generate", "plan.json", "--workflow", planned, **variables)
        assert result.status == 0, result.stderr
        return result.stderr.splitlines()[-1]

    return generate


def test_without_a_registry_chiron_builds_what_faas_cli_deploys(generated):
    shown = "next: chiron build -f build/stack.yaml && faas-cli deploy -f build/stack.yaml"
    assert generated() == shown


def test_with_a_registry_faas_cli_builds_in_the_folder_of_its_templates(generated):
    verbs = " && ".join(f"faas-cli {verb} -f stack.yaml" for verb in ("build", "push", "deploy"))
    assert generated(OPENFAAS_PREFIX=REGISTRY) == f"next: cd build && {verbs}"


@pytest.mark.parametrize("gateway", ["faasd", 401], indirect=True)
def test_images_for_another_gateway_are_built_and_pushed_by_faas_cli(
    gateway, generated, chiron, faas_cli, tmp_path
):
    generated(OPENFAAS_PREFIX=REGISTRY)
    named = {"OPENFAAS_URL": gateway, "OPENFAAS_PREFIX": REGISTRY}
    result = chiron("build", "-f", "build/stack.yaml", **named)
    assert result.status == 0, result.stderr
    asked = faas_cli.read_text().splitlines()
    assert {line.split(": ")[0] for line in asked} == {str(tmp_path / "build")}
    assert [line.split()[1] for line in asked] == sorted(line.split()[1] for line in asked)
    assert {line.split()[1] for line in asked} == {"build", "push"}
    assert result.stderr.splitlines()[-1] == "next: faas-cli deploy -f build/stack.yaml"


@pytest.mark.parametrize(
    ("gateway", "mend"),
    [("faasd", "OPENFAAS_PREFIX"), (401, "faas-cli login")],
    indirect=["gateway"],
)
def test_nothing_is_called_built_that_the_gateway_cannot_use(
    gateway, mend, generated, chiron, faas_cli
):
    generated()
    result = chiron("build", "-f", "build/stack.yaml", OPENFAAS_URL=gateway)
    assert result.status == 2
    assert mend in result.error()
    assert not faas_cli.exists()


@pytest.mark.parametrize(
    ("gateway", "answers"), [("chiron-embedded",) * 2, (404, 404)], indirect=["gateway"]
)
def test_images_are_the_embedded_gateways_where_that_or_none_answers(
    gateway, answers, generated, chiron, faas_cli, environment
):
    generated()
    result = chiron("build", "-f", "build/stack.yaml", OPENFAAS_URL=gateway)
    assert result.status == 0
    assert ("no gateway says" in result.stderr) == (answers == 404)
    assert not faas_cli.exists()
    assert list(Path(environment["CHIRON_HOME"]).rglob("small-wrap1*"))


@pytest.mark.parametrize("gateway", ["faasd"], indirect=True)
def test_what_was_assumed_and_not_measured_is_said_in_one_line(
    gateway, chiron, platform, monkeypatch
):
    assumed = "process_compute_ms", "short_release_ms"
    found = platform.model_copy(update={"assumed": assumed})
    monkeypatch.setattr("chiron.cli.calibrate.calibrate", lambda *_, **__: found)

    result = chiron("calibrate", OPENFAAS_URL=gateway)

    assert result.status == 0, result.stderr
    told = [line for line in result.stderr.splitlines() if "assumed" in line]
    assert told == [f"· assumed and not measured: {', '.join(assumed)}"]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("gateway", ["faasd"], indirect=True)
def test_calibrate_says_whether_wraps_reach_each_other_and_what_each_path_costs(
    gateway, direct, chiron, platform, monkeypatch
):
    paths = {"gateway": PathCost(ms=1.3, ms_per_mb=2.0)}
    paths |= {"direct": PathCost(ms=0.4, ms_per_mb=0.75)} if direct else {}
    found = platform.model_copy(update={"paths": paths})
    monkeypatch.setattr("chiron.cli.calibrate.calibrate", lambda *_, **__: found)

    result = chiron("calibrate", OPENFAAS_URL=gateway)

    assert result.status == 0, result.stderr
    assert "from wrap to wrap, gateway: 1.30 ms + 2.00 ms per MB" in result.stderr
    assert ("from wrap to wrap, direct: 0.40 ms + 0.75 ms per MB" in result.stderr) == direct
    assert ("direct connections between wraps are not possible here" in result.stderr) != direct
