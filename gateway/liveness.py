"""Liveness of a replica: whether a silent replica will ever answer again.

Any HTTP answer is a sign of life. Without an answer, a replica is dead if it

- refuses connections several times in a row: nothing listens any more;
- is stopped, as by SIGSTOP;
- has neither answered nor computed for as long as a call or a start may last. A shorter silence
  may be a wait on all its threads, or a restart.

A replica that computes is alive.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp

from chiron.gateway import processes
from chiron.gateway.backend import Child

_PERIOD_S = 2.0
_TIMEOUT_S = 2.0
_MOST_REFUSALS = 3
_MOST_LOOKS_STOPPED = 2
_STOPPED = "T"
#: The share of a core below which it does not compute, but only serves connections and timers.
_IDLE_SHARE = 0.01
_LEAST_SILENCE_S = 10.0


async def await_death(child: Child, longest_silence_s: float, doubtful: Callable[[], bool]) -> str:
    """While in doubt, poll a replica's health until it answers; return why it is dead.

    Args:
        child: the replica, which is ready.
        longest_silence_s: the longest duration of a call or a start.
        doubtful: whether there is a reason to poll since its last call; it is polled only then.
    """
    suspect = _Suspect(child, longest_silence_s)
    health = "answers"
    while True:
        await asyncio.sleep(_PERIOD_S)
        if health == "answers" and not doubtful():
            continue
        health = await _ask(child)
        why = None
        if health == "answers":
            suspect = _Suspect(child, longest_silence_s)
        elif health == "refuses":
            why = suspect.refuses()
        else:
            why = suspect.is_silent(await asyncio.to_thread(processes.snapshot))
        if why:
            return why


async def _ask(child: Child) -> str:
    url = f"http://{child.host}:{child.port}{child.health_path}"
    limit = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        # By a connection of its own, as calls may use all pooled connections.
        async with aiohttp.ClientSession(timeout=limit) as http, http.get(url):
            return "answers"
    except aiohttp.ClientConnectorError:
        return "refuses"
    except (aiohttp.ClientError, TimeoutError):
        return "is silent"


class _Suspect:
    """The evidence on a replica since its last sign of life."""

    def __init__(self, child: Child, longest_silence_s: float) -> None:
        self._child = child
        self._longest_silence_s = longest_silence_s
        self._refusals = 0
        self._looks_stopped = 0
        self._idle_since: float | None = None
        self._cpu_s = 0.0

    def refuses(self) -> str | None:
        """Record a refused connection; return why the replica is dead, if it is."""
        self._refusals += 1
        dead = self._refusals >= _MOST_REFUSALS
        return "nothing listens at its port any more" if dead else None

    def is_silent(self, table: dict[int, processes.Entry]) -> str | None:
        """Record a missing answer, with the running processes; return why the replica is dead."""
        first = table.get(self._child.pid or 0)
        if first is None:
            return None
        self._refusals = 0
        self._looks_stopped = self._looks_stopped + 1 if first.state == _STOPPED else 0
        if self._looks_stopped >= _MOST_LOOKS_STOPPED:
            return "it is stopped"
        now = time.monotonic()
        pids = processes.descendants([self._child.pid or 0], table)
        cpu_s = sum(table[pid].cpu_s for pid in pids)
        since = self._idle_since
        if since is None or cpu_s - self._cpu_s > _IDLE_SHARE * (now - since):
            self._idle_since, self._cpu_s = now, cpu_s
        elif now - since > max(self._longest_silence_s, _LEAST_SILENCE_S):
            path = self._child.health_path
            return f"it has neither answered {path} nor computed for {now - since:.0f} s"
        return None
