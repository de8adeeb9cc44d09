"""Finds the processes of functions in containers, in trees that are laid out as theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from chiron.profiler.sandbox import docker_pids, faasd_pids, kubernetes_pids, servers

Process = Callable[..., None]

WATCHDOG = "fwatchdog"
SERVER = "python\0index.py"
PODS = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-2.scope\n"


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Writes a process into the tree."""

    def write(pid: int, command: str, parent: int = 1, cgroup: str = "", host: str = "") -> None:
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "cmdline").write_text(f"{command}\0")
        (folder / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "environ").write_text(f"PATH=/bin\0HOSTNAME={host}\0")

    return write


@pytest.mark.parametrize(
    "command",
    [
        "python\0index.py",
        "python3.14t\0index.py",
        "/usr/local/bin/python3.11\0-u\0/home/app/index.py",
    ],
)
def test_the_server_is_the_watchdogs_child_and_not_what_it_forked(
    command: str, process: Process, tmp_path: Path
) -> None:
    process(10, WATCHDOG)
    process(11, command, parent=10)
    process(12, command, parent=11)
    process(13, "python\0other.py", parent=11)
    assert servers({10, 11, 12, 13, 99}, tmp_path) == [11]


@pytest.mark.parametrize("tree", ["sys/fs/cgroup/pids", "sys/fs/cgroup"])
def test_faasd_names_the_cgroup_after_the_function(tree: str, tmp_path: Path) -> None:
    group = tmp_path / tree / "openfaas-fn" / "quotes"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("10\n11\n")
    assert faasd_pids("quotes", tmp_path) == {10, 11}
    assert faasd_pids("quote", tmp_path) == set()


def test_kubernetes_names_the_pod_after_the_function(process: Process, tmp_path: Path) -> None:
    process(10, WATCHDOG, cgroup=PODS, host="quotes-6d4cf56db6-x2b4q")
    process(11, SERVER, parent=10, cgroup=PODS, host="quotes-6d4cf56db6-x2b4q")
    process(12, SERVER, cgroup=PODS, host="quotes-late-6d4cf56db6-x2b4q")
    process(13, SERVER, cgroup="0::/user.slice\n", host="quotes-6d4cf56db6-x2b4q")
    assert kubernetes_pids("quotes", tmp_path) == {10, 11}
    assert servers(kubernetes_pids("quotes", tmp_path), tmp_path) == [11]


def engine(labelled: dict[str, int], named: dict[str, int], url: str = "") -> SimpleNamespace:
    """A Docker client with a container for each function, by label and by name: their pids."""

    def containers(filters: dict[str, str], ignore_removed: bool) -> list[SimpleNamespace]:
        assert ignore_removed
        [(how, what)] = filters.items()
        found = labelled if how == "label" else named
        wanted = "com.openfaas.function={}" if how == "label" else "^/?{}$"
        pids = [pid for name, pid in found.items() if what == wanted.format(re.escape(name))]
        labels = {"chiron.gateway.url": url} if url else {}
        return [SimpleNamespace(attrs={"State": {"Pid": pid}}, labels=labels) for pid in pids]

    return SimpleNamespace(containers=SimpleNamespace(list=containers))


@pytest.mark.parametrize("by", ["label", "name"])
def test_docker_tells_the_first_process_and_its_cgroup_the_others(
    by: str, process: Process, tmp_path: Path
) -> None:
    process(10, WATCHDOG, cgroup="0::/docker/abc\n")
    process(11, SERVER, parent=10, cgroup="0::/docker/abc\n")
    process(12, SERVER, cgroup="0::/docker/def\n")
    found = {"quotes": 10, "other": 12}
    client = engine(found, {}) if by == "label" else engine({}, found)
    pids = docker_pids("quotes", client, tmp_path, lambda url: True)
    assert servers(pids, tmp_path) == [11]


def test_containers_of_another_gateway_are_left_out(process: Process, tmp_path: Path) -> None:
    process(10, SERVER, cgroup="0::/docker/abc\n")
    client = engine({"quotes": 10}, {}, url="http://127.0.0.1:1")
    assert docker_pids("quotes", client, tmp_path, "http://127.0.0.1:1".__eq__) == {10}
    assert docker_pids("quotes", client, tmp_path, "http://127.0.0.1:2".__eq__) == set()


def test_no_tree_at_all_has_no_processes(tmp_path: Path) -> None:
    assert faasd_pids("quotes", tmp_path) | kubernetes_pids("quotes", tmp_path) == set()
