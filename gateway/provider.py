"""What faasd and Kubernetes do to functions and this gateway does not, for tests to meet it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chiron.gateway.names import ProviderName

#: Seconds after which faasd and Kubernetes kill what they have told to end.
GRACE_S = 30.0


@dataclass(frozen=True)
class Provider:
    """How functions are started, replaced and removed; by default, so that no call fails of it."""

    #: Its name in /system/info; empty for the backend's.
    orchestration: str = ""
    #: How long of-watchdog sleeps at most at the end of a replica, in seconds.
    grace_s: float = 0.0
    #: A function has one replica, which ends before the next deployment's starts, and is not
    #: started again where it ends by itself; no list counts those that are ready.
    removes_first: bool = False
    #: A removal is answered at once; the name is free when the replicas have ended.
    removes_later: bool = False
    #: A replica starts once the machine's cores have room for the CPU it requests.
    schedules: bool = False
    #: Status and words for a call where no replica is ready; the call waits if None.
    unreachable: tuple[int, str] | None = None

    @classmethod
    def named(cls, name: ProviderName | None, grace_s: float = GRACE_S) -> Provider:
        """The provider called `name`; None for this gateway's own ways."""
        if name == "faasd":
            words = "Can't reach service for: {}"
            return cls("", grace_s, removes_first=True, unreachable=(500, words))
        if name == "kubernetes":
            words = "No endpoints available for: {}."
            return cls(name, grace_s, removes_later=True, schedules=True, unreachable=(503, words))
        return cls()


class Room:
    """CPU that replicas request, in thousandths of a core; where too little is free they wait."""

    def __init__(self, millicores: float) -> None:
        self._free = millicores
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def taken(self, millicores: int) -> AsyncIterator[None]:
        """Have so much for the length of a block."""
        while millicores > self._free:
            await self._changed.wait()
        self._free -= millicores
        try:
            yield
        finally:
            self._free += millicores
            self._changed.set()
            self._changed = asyncio.Event()
