"""What containers use, as their control groups count it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from gateway.docker_container import Container
from gateway.docker_engine import engine_errors
from gateway.errors import GatewayError
from gateway.usage import CpuMeter, Usage

_NS_PER_S = 1e9


def container_usage(containers: Sequence[Container], meter: CpuMeter) -> Usage:
    """CPU time and memory of containers; one that has just ended counts nothing."""
    cpu_s: dict[int, float] = {}
    since: dict[int, float] = {}
    memory = 0
    for child in containers:
        running, pid = child.running, child.pid
        if running is None or pid is None:
            continue
        with contextlib.suppress(GatewayError), engine_errors():
            now = running.stats(stream=False, one_shot=True)
            cpu_s[pid] = now["cpu_stats"]["cpu_usage"]["total_usage"] / _NS_PER_S
            since[pid] = child.since
            memory += memory_bytes(now["memory_stats"])
    return Usage(meter.millicores(cpu_s, since), memory)


def memory_bytes(stats: dict[str, Any]) -> int:
    """Memory of a control group without the page cache that the kernel can drop at once.

    As `docker stats` does: the field has one name in version 1 and another in version 2.
    """
    detail = stats.get("stats", {})
    droppable = detail.get("total_inactive_file", detail.get("inactive_file", 0))
    return max(0, int(stats.get("usage", 0)) - int(droppable))
