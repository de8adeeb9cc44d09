"""Wraps stay within their memory whose forked processes take much more than a warm one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chiron.deployment.launcher import Launcher
from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.profile import profile
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.platform import Platform

MIB = 40
AT_ONCE = 4
LARGE = f"KEPT = b'1' * ({MIB} << 20)\n"
#: It imports in its first call.
IMPORTS = """
import time
def handle(req):
    import large
    time.sleep(0.2)
    return str(len(large.KEPT))
"""
#: Each process imports it for itself, since it opens what processes cannot share.
OPENS = """
import socket, time
import large
SOCKET = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def handle(req):
    time.sleep(0.2)
    return str(len(large.KEPT))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("briefly_profiled")
def test_what_each_forked_process_imports_has_room_for_all_requests_at_once(
    write_folder: Callable[..., WorkflowFolder],
    launcher: Launcher,
    platform: Platform,
    tmp_path: Path,
) -> None:
    functions = {"imports": IMPORTS, "opens": OPENS}
    folder = write_folder(
        tmp_path,
        {"tasks": {"a": "imports", "b": "opens"}, "edges": [["a", "b"]]},
        functions,
        {name: {"large.py": LARGE} for name in functions},
    )
    found = profile(folder, LocalLauncher(str), samples=4, probe_alone=True)
    for function in found.functions.values():
        # A process that imports for itself has its share of an interpreter beside it.
        assert MIB < function.forked_mib < 1.5 * MIB
    payload = folder.payloads()[0].content
    for mechanism in ("fork", "pool"):
        choices = Choices(planner="sand", mechanism=mechanism)
        plan = schedule(folder.workflow, found, platform, 60_000.0, choices)
        assert plan.wraps[0].processes[1:]
        with (
            launcher.launch(folder.workflow, folder, plan) as placed,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            # The gateway ends a wrap that is above the plan's memory.
            answers = list(pool.map(lambda _: placed.invoke(payload).output, range(3 * AT_ONCE)))
        assert set(answers) == {str(MIB << 20)}
