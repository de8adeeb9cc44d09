"""CPU time of all that a request passes: sandboxes, supporting functions, gateway and client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from evaluation.usage.sandboxes import Sandboxes, Unseen, meter

SANDBOXES, SUPPORTING, GATEWAY, CLIENT = "sandboxes", "supporting functions", "gateway", "client"
PARTS = (SANDBOXES, SUPPORTING, GATEWAY, CLIENT)


@dataclass(frozen=True)
class Around:
    """Meters of what serves requests beside a variant's own sandboxes.

    ``supporting`` is None where the workflow has no supporting functions, ``gateway`` where its
    process is not the one that has started the sandboxes, or is not to be seen.
    """

    supporting: Sandboxes | Unseen | None
    gateway: psutil.Process | None

    def cpu_s(self, sandboxes: Sandboxes | Unseen) -> dict[str, float] | None:
        """Seconds of CPU time so far by part; None where `sandboxes` cannot be seen."""
        own = sandboxes.cpu_s()
        if own is None:
            return None
        found = {SANDBOXES: own, CLIENT: _own_s(psutil.Process())}
        if self.supporting and (seconds := self.supporting.cpu_s()) is not None:
            found[SUPPORTING] = seconds
        if self.gateway:
            found[GATEWAY] = _own_s(self.gateway)
        return found


def around(supporting: Sequence[str], gateway_url: str, sandboxes: Sandboxes | Unseen) -> Around:
    """The meters of the gateway at `gateway_url`, which runs `sandboxes` and `supporting`."""
    beside = meter(supporting, gateway_url) if supporting else None
    return Around(beside, _gateway(sandboxes) if isinstance(sandboxes, Sandboxes) else None)


def _gateway(sandboxes: Sandboxes) -> psutil.Process | None:
    """The ancestor of a sandbox that is an embedded gateway, whose sockets only root may see."""
    try:
        for ancestor in psutil.Process(sandboxes.pids[0]).parents():
            if ancestor.cmdline()[1:3] == ["-m", "gateway"]:
                return ancestor
    except psutil.Error:
        return None
    return None


def _own_s(process: psutil.Process) -> float:
    """CPU time of the process alone."""
    times = process.cpu_times()
    return float(times.user + times.system)
