"""Tracing is checked by tracing, and a refusal is explained."""

import os
import shutil
from pathlib import Path

import psutil
import pytest

from chiron.installation.tracing import check_strace, check_tracing, explain_refusal

SYS_PTRACE = 1 << 19


def test_without_strace_the_fix_is_the_distributions_line(tmp_path):
    finding = check_strace(str(tmp_path), {"ID": "debian"})
    assert not finding.ok
    assert "apt-get install -y strace" in finding.fix


def fake_strace(folder: Path, script: str) -> str:
    path = folder / "strace"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(folder)


def test_a_refusal_is_reported_in_straces_words(tmp_path):
    search_path = fake_strace(tmp_path, "echo 'strace: Operation not permitted' >&2; exit 1")
    assert check_strace(search_path, {}).ok
    finding = check_tracing(search_path)
    assert not finding.ok
    assert finding.detail == "strace: Operation not permitted"
    assert finding.fix


def test_a_strace_that_may_not_attach_is_not_enough(tmp_path):
    script = 'case "$*" in *-p*) echo "strace: attach: not permitted" >&2; exit 1;; esac'
    finding = check_tracing(fake_strace(tmp_path, script))
    assert not finding.ok
    assert finding.detail == "strace: attach: not permitted"


def test_a_strace_that_does_not_run_is_reported(tmp_path):
    path = tmp_path / "strace"
    path.write_bytes(b"\x00not a program")
    path.chmod(0o755)
    finding = check_tracing(str(tmp_path))
    assert not finding.ok
    assert "does not run" in finding.detail


@pytest.mark.strace
def test_a_process_with_the_capability_may_trace_and_leaves_nothing_running():
    search_path = os.environ["PATH"]
    if not shutil.which("strace", path=search_path):
        pytest.skip("no strace on PATH")
    status = Path("/proc/self/status").read_text()
    if not int(status.split("CapEff:")[1].split()[0], 16) & SYS_PTRACE:
        pytest.skip("this process lacks the capability SYS_PTRACE")

    before = set(psutil.Process().children())
    finding = check_tracing(search_path)

    assert finding.ok, finding.detail
    assert set(psutil.Process().children()) <= before


def machine(root: Path, *, scope: str | None, container: bool, capabilities: int) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/status").write_text(f"Name:\tx\nCapEff:\t{capabilities:016x}\n")
    if scope is not None:
        (root / "proc/sys/kernel/yama").mkdir(parents=True)
        (root / "proc/sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")
    if container:
        (root / ".dockerenv").touch()
    return root


@pytest.mark.parametrize(
    ("scope", "container", "capabilities", "fix"),
    [
        ("1", False, 0, "kernel.yama.ptrace_scope=0"),
        ("2", False, 0, "kernel.yama.ptrace_scope=0"),
        ("3", False, 0, "reboot"),
        ("0", False, 0, "run as root"),
        (None, False, 0, "run as root"),
        ("1", True, 0, "--cap-add=SYS_PTRACE"),
        ("1", True, SYS_PTRACE, "kernel.yama.ptrace_scope=0"),
    ],
)
def test_the_fix_fits_the_machine(tmp_path, scope, container, capabilities, fix):
    root = machine(tmp_path, scope=scope, container=container, capabilities=capabilities)
    assert fix in explain_refusal(root)
