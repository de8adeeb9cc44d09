"""The preflight check finds what is missing, says the mend and never raises."""

import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chiron.installation.packages import Finding
from chiron.installation.preflight import (
    check_cgroup,
    check_dashboard,
    check_docker,
    check_gateway,
    preflight,
)
from tests.serving import Answering, served


@pytest.fixture
def answers() -> Iterator[dict[str, Any]]:
    """What a gateway answers, by path; its URL is under "url"."""
    content: dict[str, Any] = {}

    class Handler(Answering):
        def do_GET(self) -> None:
            self.answer(*content.get(self.path, (401, "invalid credentials")))

    with served(Handler) as url:
        content["url"] = url
        yield content


def info(provider: str) -> tuple[int, dict[str, Any]]:
    return 200, {"provider": {"provider": provider, "version": {"release": "1.2"}}}


@pytest.mark.parametrize(
    ("provider", "limits"),
    [
        ("faasd-ce", "2 of 15 functions, 1 replicas each (CE)"),
        ("faas-netes-ce", "2 of 15 functions, 1 to 5 replicas each (CE)"),
        ("elsewhere", "2 functions"),
    ],
)
def test_a_gateway_is_described_with_its_limits(answers, provider, limits):
    answers["/system/info"] = info(provider)
    answers["/system/functions"] = (200, [{"name": "a"}, {"name": "b"}])

    finding, _ = check_gateway(answers["url"], None)

    assert finding.ok
    assert finding.detail == f"{provider} 1.2 at {answers['url']}, {limits}"


def test_a_gateway_that_wants_a_login_says_how(answers):
    finding, _ = check_gateway(answers["url"], None)
    assert not finding.ok
    assert finding.fix == f"faas-cli login -g {answers['url']}"


def test_no_gateway_leads_to_the_embedded_one():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        finding, told = check_gateway(f"http://127.0.0.1:{unused.getsockname()[1]}", None)
    assert not finding.ok
    assert told is None
    assert "chiron serve" in finding.fix


def test_control_groups_are_told_apart(tmp_path):
    assert not check_cgroup(tmp_path).ok
    (tmp_path / "memory").mkdir()
    assert check_cgroup(tmp_path).detail == "version 1"
    (tmp_path / "cgroup.controllers").touch()
    assert check_cgroup(tmp_path).detail == "version 2"


def test_an_engine_that_is_not_there_is_no_exception(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    finding = check_docker()
    assert not finding.ok
    assert finding.fix
    assert "\n" not in finding.detail


def test_without_dash_the_extra_is_named(monkeypatch):
    assert check_dashboard().ok
    monkeypatch.setitem(sys.modules, "dash_cytoscape", None)
    assert "chiron-openfaas[dashboard]" in check_dashboard().fix


def test_preflight_has_one_finding_a_thing_and_a_fix_for_each_that_is_missing(tmp_path):
    variables = {"PATH": str(tmp_path), "OPENFAAS_CONFIG": str(tmp_path)}

    findings = preflight("http://127.0.0.1:9", variables)

    by_name = {finding.name: finding for finding in findings}
    assert list(by_name) == [
        "python",
        "cores",
        "cgroup",
        "strace",
        "ptrace",
        "faas-cli",
        "gateway",
        "images",
        "docker",
        "dashboard",
    ]
    assert not any(by_name[name].ok for name in ("strace", "ptrace", "faas-cli", "gateway"))
    assert all(finding.ok is (finding.fix == "") for finding in findings)


def test_preflight_names_credentials_that_cannot_be_read(tmp_path):
    (tmp_path / "config.yml").write_text("auths: [")
    variables = {"PATH": "", "OPENFAAS_CONFIG": str(tmp_path)}

    [finding] = [f for f in preflight("http://127.0.0.1:9", variables) if f.name == "gateway"]

    assert str(tmp_path) in finding.detail
    assert "faas-cli login" in finding.fix


@pytest.fixture
def docker(tmp_path) -> Callable[[str], dict[str, str]]:
    """Puts a docker on a PATH of its own; returns variables with it and with a registry."""

    def install(script: str) -> dict[str, str]:
        file = tmp_path / "docker"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return {"PATH": str(tmp_path), "OPENFAAS_PREFIX": "docker.io/team"}

    return install


def images(url: str, variables: dict[str, str], tmp_path) -> Finding:
    found = preflight(url, variables | {"OPENFAAS_CONFIG": str(tmp_path)})
    return next(finding for finding in found if finding.name == "images")


@pytest.mark.parametrize(
    ("provider", "ok", "told"),
    [
        ("faasd", False, "OPENFAAS_PREFIX is not set, and faasd pulls"),
        ("chiron-embedded", True, "for the embedded gateway"),
    ],
)
def test_a_gateway_that_pulls_images_needs_a_registry(answers, provider, ok, told, tmp_path):
    answers["/system/info"] = info(provider)
    answers["/system/functions"] = (200, [])
    finding = images(answers["url"], {"PATH": ""}, tmp_path)
    assert finding.ok is ok
    assert told in finding.detail
    assert finding.fix.startswith("export OPENFAAS_PREFIX=") is not ok


def test_the_engine_is_the_one_that_faas_cli_would_use(docker, tmp_path):
    by_context = docker('test "$DOCKER_CONTEXT" = far && echo 27.1 || { echo no far >&2; exit 1; }')
    found = images("http://127.0.0.1:9", by_context | {"DOCKER_CONTEXT": "far"}, tmp_path)
    assert found.ok
    assert found.detail == "OPENFAAS_PREFIX is docker.io/team; faas-cli builds with engine 27.1"
    lost = images("http://127.0.0.1:9", by_context, tmp_path)
    assert not lost.ok
    assert lost.detail.endswith("the engine of docker does not answer: no far")


def test_a_registry_without_docker_or_one_that_cannot_be_is_said(docker, tmp_path):
    named = docker("exit 0")
    (tmp_path / "docker").unlink()
    assert "is not on PATH" in images("http://127.0.0.1:9", named, tmp_path).detail
    wrong = images("http://127.0.0.1:9", named | {"OPENFAAS_PREFIX": "A B"}, tmp_path)
    assert "OPENFAAS_PREFIX is" in wrong.detail and not wrong.ok
