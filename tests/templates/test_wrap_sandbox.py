"""What a wrap reads of its sandbox, from control groups of version 1 and 2."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from wrap.config import sandbox
from wrap.config.sandbox import MemoryKills

GROUPS = "sys/fs/cgroup"
CORES = range(16)
MACHINE = psutil.virtual_memory().total


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a machine of 16 cores: the lines of /proc/self/cgroup, and files below the mount."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(CORES))

    def make(cgroup: str, files: dict[str, str]) -> Path:
        (tmp_path / "proc" / "self").mkdir(parents=True)
        (tmp_path / "proc" / "self" / "cgroup").write_text(cgroup)
        for name, text in files.items():
            path = tmp_path / GROUPS / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000", 2), ("max 100000", 16), ("50 100", 1)]
)
def test_version_2_has_quota_and_limit_in_one_group(
    quota: str, cores: int, tree: Callable[..., Path]
) -> None:
    root = tree("0::/\n", {"cpu.max": quota, "memory.max": "134217728"})
    assert (sandbox.cores(root), sandbox.memory_bytes(root)) == (cores, 128 << 20)


@pytest.mark.parametrize(("quota", "cores"), [("250000", 3), ("-1", 16)])
def test_version_1_has_a_group_for_each_controller(
    quota: str, cores: int, tree: Callable[..., Path]
) -> None:
    lines = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n"
    files = {
        "cpu/docker/abc/cpu.cfs_quota_us": quota,
        "cpu/docker/abc/cpu.cfs_period_us": "100000",
        "memory/docker/abc/memory.limit_in_bytes": "67108864",
    }
    root = tree(lines, files)
    assert (sandbox.cores(root), sandbox.memory_bytes(root)) == (cores, 64 << 20)


def test_a_container_that_sees_only_its_own_group_finds_it_at_the_mount(
    tree: Callable[..., Path],
) -> None:
    files = {
        "cpu/cpu.cfs_quota_us": "100000",
        "cpu/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "67108864",
    }
    root = tree("5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n", files)
    assert (sandbox.cores(root), sandbox.memory_bytes(root)) == (1, 64 << 20)


def test_the_tightest_of_the_groups_around_it_counts(tree: Callable[..., Path]) -> None:
    files = {
        "kubepods/cpu.max": "400000 100000",
        "kubepods/pod1/cpu.max": "200000 100000",
        "kubepods/pod1/memory.max": "1000000",
        "kubepods/pod1/c/cpu.max": "max 100000",
        "kubepods/pod1/c/memory.max": "max",
    }
    root = tree("0::/kubepods/pod1/c\n", files)
    assert (sandbox.cores(root), sandbox.memory_bytes(root)) == (2, 1_000_000)


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ("", {}),
        ("0::/\n", {}),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}),
        ("0::/\n", {"cpu.max": "", "memory.max": "much"}),
    ],
)
def test_without_a_limit_the_cpuset_and_the_machine_are_all_that_counts(
    lines: str, files: dict[str, str], tree: Callable[..., Path]
) -> None:
    root = tree(lines, files)
    assert (sandbox.cores(root), sandbox.memory_bytes(root)) == (16, MACHINE)


def test_where_there_are_no_groups_the_limit_is_told(
    tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_LIMIT_BYTES", "134217728")
    assert sandbox.memory_bytes(tree("", {})) == 128 << 20


def test_a_cpuset_smaller_than_the_quota_wins(
    tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree("0::/\n", {"cpu.max": "800000 100000"})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert sandbox.cores(root) == 2


@pytest.mark.parametrize(
    ("cgroup", "files"),
    [
        ("0::/\n", {"memory.events": "low 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0"}),
        (
            "0::/pod/us\n",
            {"pod/us/memory.events": "oom 3\noom_kill 2", "pod/memory.events": "oom_kill 7"},
        ),
        (
            "4:memory:/docker/abc\n",
            {"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2"},
        ),
    ],
)
def test_whom_the_kernel_killed_for_memory_is_counted_in_the_own_group(
    cgroup: str, files: dict[str, str], tree: Callable[..., Path]
) -> None:
    assert sandbox.memory_kills(tree(cgroup, files)) == 2


def test_without_control_groups_nobody_is_known_to_be_killed(tree: Callable[..., Path]) -> None:
    assert sandbox.memory_kills(tree("", {})) == 0


def test_requests_in_flight_are_told_of_a_kill_and_later_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = iter([4, 4, 5, 5, 5])
    clock = iter([20.0])
    monkeypatch.setattr(sandbox, "memory_kills", lambda: next(counted))
    monkeypatch.setattr(sandbox, "kernel_memory_bytes", lambda: 64 << 20)
    monkeypatch.setattr("wrap.config.sandbox.time.monotonic", lambda: next(clock))
    kills = MemoryKills()
    assert kills.during(9.0) is None
    assert kills.during(10.0) == "the kernel killed a process above the memory limit of 64 MiB"
    assert kills.during(11.0) is not None
    assert kills.during(21.0) is None
