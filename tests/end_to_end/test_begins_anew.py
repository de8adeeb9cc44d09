"""A wrap that begins anew in place is still the same replica, and no request to it is lost."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import requests

from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule

BOUND_S = 60
#: A system call that does not return, where it is asked for.
STUCK = """
import os, time

PIPE, BEGUN = os.pipe(), time.monotonic()


def handle(req):
    if req == "stuck":
        os.read(PIPE[0], 1)
    return f"{os.getpid()} {BEGUN}"
"""
WORKFLOW = {"tasks": {"a": "stuck"}, "edges": []}


def test_a_wrap_with_lost_threads_is_the_same_replica_begun_anew(
    place, write_folder, profile_of, platform, tmp_path
):
    limits = {"stuck": {"environment": {"exec_timeout": "300ms"}}}
    folder = write_folder(tmp_path / "stuck", WORKFLOW, {"stuck": STUCK}, {}, limits)
    workflow = folder.workflow
    plan = schedule(workflow, profile_of(workflow), platform, 12.0, Choices(planner="faastlane-t"))
    with place.deployed(folder, [plan]) as (deployment,), ThreadPoolExecutor(8) as threads:
        url = f"{place.gateway.url}/function/{deployment.names[0]}"

        def ask(body: str) -> tuple[int, str]:
            answer = requests.post(url, body, timeout=BOUND_S)
            return answer.status_code, answer.text

        before = ask("")
        asked, end = [], time.monotonic() + BOUND_S
        while (now := ask(""))[1] == before[1] or now[0] == 503:
            assert time.monotonic() < end
            asked += threads.map(ask, ["stuck"] * 8)
        statuses = [status for status, _ in asked]
        assert set(statuses) <= {503, 504}
        assert 64 <= statuses.count(504) < 64 + 3 * 8
        assert now[0] == 200 and now[1].split()[0] == before[1].split()[0]
