"""Behaviour of faasd and Kubernetes that differs from this gateway's, to test against."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chiron.gateway.names import ProviderName

#: Seconds after SIGTERM when faasd and Kubernetes kill a process.
GRACE_S = 30.0


@dataclass(frozen=True)
class Provider:
    """How functions are started, replaced and removed; the default never makes a call fail."""

    #: Its name in /system/info; empty for the backend's.
    orchestration: str = ""
    #: The longest sleep of of-watchdog at the end of a replica, in seconds.
    grace_s: float = 0.0
    #: A function has one replica, which ends before the next deployment's starts. It is not
    #: restarted if it ends by itself, and lists omit the count of ready replicas.
    removes_first: bool = False
    #: A removal is answered at once; the name is free only when the replicas have ended.
    removes_later: bool = False
    #: A replica starts when enough of the machine's CPU is free for its request.
    schedules: bool = False
    #: Status and message of a call when no replica is ready; the call waits if None.
    unreachable: tuple[int, str] | None = None

    @classmethod
    def named(cls, name: ProviderName | None, grace_s: float = GRACE_S) -> Provider:
        """Return the provider called `name`; for None, this gateway's own behaviour."""
        if name == "faasd":
            words = "Can't reach service for: {}"
            return cls("", grace_s, removes_first=True, unreachable=(500, words))
        if name == "kubernetes":
            words = "No endpoints available for: {}."
            return cls(name, grace_s, removes_later=True, schedules=True, unreachable=(503, words))
        return cls()


class CpuPool:
    """CPU that replicas request, in thousandths of a core; they wait while too little is free."""

    def __init__(self, millicores: float) -> None:
        self._free = millicores
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, millicores: int) -> AsyncIterator[None]:
        """Reserve `millicores` for the duration of a block."""
        while millicores > self._free:
            await self._changed.wait()
        self._free -= millicores
        try:
            yield
        finally:
            self._free += millicores
            self._changed.set()
            self._changed = asyncio.Event()
