"""What installation/ has for Kubernetes says what the program, and Prometheus, understand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from docker.utils.build import exclude_paths

from chiron.cli.main import chiron
from chiron.generator.annotations import SCRAPE
from chiron.services import state_folder

INSTALLATION = Path(__file__).parents[2] / "installation"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """The objects of the manifest by their kind."""
    text = (INSTALLATION / "watch.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


@pytest.fixture(scope="module")
def pod(objects: dict[str, Any]) -> dict[str, Any]:
    return objects["Deployment"]["spec"]["template"]["spec"]


def test_its_commands_are_those_of_the_program(
    pod: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for container in pod["containers"]:
        verb, *arguments = container["args"]
        command = chiron.get_command(click.Context(chiron), verb)
        assert command is not None
        command.make_context(verb, arguments)  # which refuses what it does not understand


def test_the_dashboard_reads_the_journal_that_the_watcher_writes(pod: dict[str, Any]) -> None:
    folders = set()
    for container in pod["containers"]:
        variables = {each["name"]: each["value"] for each in container["env"]}
        folders.add(state_folder(variables))
        mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        assert mounts[variables["CHIRON_HOME"]] == "state"
    (folder,) = folders
    assert folder.is_relative_to("/state")
    (volume,) = (each for each in pod["volumes"] if each["name"] == "state")
    assert volume["persistentVolumeClaim"] == {"claimName": "chiron-watch"}


def test_it_keeps_to_restricted_pod_security_and_may_do_nothing_in_the_cluster(
    objects: dict[str, Any], pod: dict[str, Any]
) -> None:
    assert set(objects) == {"ServiceAccount", "PersistentVolumeClaim", "Deployment"}
    assert objects["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize(
    "dockerfile",
    [
        INSTALLATION / "Dockerfile",
        INSTALLATION.parent / "templates" / "python3-wrap" / "Dockerfile",
        INSTALLATION.parent / "templates" / "plain" / "Dockerfile",
    ],
    ids=["watch", "python3-wrap", "plain"],
)
def test_images_run_as_a_number_of_which_kubernetes_sees_that_it_is_not_root(
    dockerfile: Path,
) -> None:
    """The number is the one that OpenFaaS's chart gives functions with setNonRootUser."""
    lines = dockerfile.read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users[-1] == "12000"
    assert any("useradd --uid 12000 " in line for line in lines)


def test_what_docker_is_sent_has_all_that_the_image_is_built_of_and_no_environment(
    tmp_path: Path,
) -> None:
    """Docker's older builder sends the whole context before it begins."""
    wanted = {
        ".venv/bin/faas-cli",
        "build/wheel/chiron_openfaas.whl",
        "benchmarks/finra/stack.yaml",
        "installation/Dockerfile",
    }
    unwanted = {".venv/lib/large.so", ".git/objects/pack", ".mypy_cache/a", "cli/__pycache__/a.pyc"}
    for name in wanted | unwanted:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    lines = (INSTALLATION.parent / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    sent = exclude_paths(str(tmp_path), patterns, "installation/Dockerfile")
    assert {name for name in sent if (tmp_path / name).is_file()} - {".dockerignore"} == wanted


def test_the_job_for_prometheus_keeps_the_pods_of_wraps() -> None:
    """Prometheus writes each sign of an annotation that is no letter or digit as an underscore."""
    (text,) = re.findall(
        r"```yaml\n( +- job_name: wraps\n +kubernetes_sd.*?)```",
        (INSTALLATION / "monitoring.md").read_text(),
        re.DOTALL,
    )
    (job,) = yaml.safe_load(text)
    kept = [each for each in job["relabel_configs"] if each.get("action") == "keep"]
    label = re.sub("[^A-Za-z0-9]", "_", SCRAPE)
    assert kept == [
        {
            "action": "keep",
            "source_labels": [f"__meta_kubernetes_pod_annotation_{label}"],
            "regex": "true",
        }
    ]
