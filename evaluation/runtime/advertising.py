"""Sends the events of benchmarks/advertising at a rate, and checks the counts of their windows."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import aiohttp

from chiron.evaluation.runtime.deployed import BENCHMARKS, handler

NAME = "advertising"
#: Requests a second; each has the events that became due since the previous request.
_REQUESTS_PER_S = 50
#: With this many unanswered requests the wrap has not kept up, and sending stops.
_MOST_UNDER_WAY = 500
_TIMEOUT_S = 30.0
_ACCEPTED = 202


class Events:
    """Numbered events, which repeat those of payload.json, and the campaign of each view."""

    def __init__(self) -> None:
        given = json.loads((BENCHMARKS / NAME / "payload.json").read_text(encoding="utf-8"))
        keeps, finds = (handler(NAME, name) for name in ("filter-views", "find-campaign"))
        self._rest, self._campaigns = list[str](), list[str | None]()
        for event in given:
            kept = keeps.handle(json.dumps(event))
            found = None if kept == "null" else json.loads(finds.handle(kept))["campaign"]
            self._campaigns.append(found)
            rest = {name: value for name, value in event.items() if name not in ("event", "time")}
            self._rest.append(json.dumps(rest)[1:])

    def body(self, numbers: range, time_ms: int) -> bytes:
        """Return the body of a request of these events, all with the time `time_ms`."""
        texts = (
            f'{{"event":{number},"time":{time_ms},{self._rest[number % len(self._rest)]}'
            for number in numbers
        )
        return f"[{','.join(texts)}]".encode()

    def campaign(self, number: int) -> str | None:
        """Return the campaign of a view; None for another event."""
        return self._campaigns[number % len(self._campaigns)]


class Window(NamedTuple):
    """A result of `count-views`; times are in seconds of the time of day."""

    at: float
    newest: float
    events: tuple[tuple[int, int], ...]
    campaigns: dict[str, int]

    @classmethod
    def read(cls, line: str) -> Window:
        """Parse a line of the file of `count-views`."""
        said = json.loads(line)
        ranges = tuple((first, last) for first, last in said["events"])
        return cls(said["at"], said["newest"] / 1000, ranges, said["campaigns"])

    @property
    def delay_ms(self) -> float:
        """Time from the end of the second in which its newest event was due until its result.

        If events take longer than a second to reach their window, that time is included.
        """
        return (self.at - int(self.newest) - 1) * 1000

    @property
    def age_ms(self) -> float:
        """Time from the due time of its newest event until its result."""
        return (self.at - self.newest) * 1000

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of its events."""
        return (n for first, last in self.events for n in range(first, last + 1))


@dataclass
class Sent:
    """The range of the events that were sent, and the acknowledged ranges.

    ``kept_up`` is false if sending stopped because too many requests were unanswered.
    """

    numbers: range
    acknowledged: list[range] = field(default_factory=list)
    kept_up: bool = True
    #: (due time, time from then to the acknowledgement) of acknowledged requests, in seconds.
    held: list[tuple[float, float]] = field(default_factory=list)


async def send(url: str, events: Events, first: int, rate: float, seconds: float) -> Sent:
    """Send events from number `first` on, `rate` a second, without waiting for answers."""
    sent, under_way = Sent(range(first, first)), set[asyncio.Task[None]]()
    limit = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=limit, connector=connector) as session:

        async def post(numbers: range, due: float) -> None:
            body = events.body(numbers, int(due * 1000))
            try:
                async with session.post(url, data=body) as response:
                    await response.read()
                    held = response.status == _ACCEPTED
            except (aiohttp.ClientError, TimeoutError):
                held = False
            if held:
                sent.acknowledged.append(numbers)
                sent.held.append((due, time.time() - due))

        begin = time.time()
        for turn in range(1, round(seconds * _REQUESTS_PER_S) + 1):
            due = begin + turn / _REQUESTS_PER_S
            await asyncio.sleep(max(0.0, due - time.time()))
            if len(under_way) >= _MOST_UNDER_WAY:
                sent.kept_up = False
                break
            numbers = range(sent.numbers.stop, first + round(rate * turn / _REQUESTS_PER_S))
            sent.numbers = range(first, numbers.stop)
            task = asyncio.create_task(post(numbers, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
    return sent


class Account(NamedTuple):
    """Counts of views, except ``events`` (acknowledged events) and ``wrong_windows``.

    A view whose request was not acknowledged may be in a window or in none.
    """

    events: int
    acknowledged: int
    counted: int
    lost: int
    twice: int
    wrong_windows: int


def account(events: Events, sent: Sent, windows: Sequence[Window]) -> Account:
    """Compare the counts of `windows` with the events that were sent."""
    seen = bytearray(len(sent.numbers))
    wrong = twice = 0
    for window in windows:
        found = Counter[str | None]()
        for number in window.numbers:
            place = number - sent.numbers.start
            if not 0 <= place < len(seen):
                continue
            twice += seen[place]
            seen[place] = 1
            found[events.campaign(number)] += 1
        wrong += found != window.campaigns
    views = [n for numbers in sent.acknowledged for n in numbers if events.campaign(n)]
    lost = sum(not seen[number - sent.numbers.start] for number in views)
    acknowledged = sum(map(len, sent.acknowledged))
    return Account(acknowledged, len(views), sum(seen), lost, twice, wrong)


def windows_in(file: Path) -> list[Window]:
    """Read the windows in `file`, without repeats: after a kill a window may have run twice."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = dict[tuple[tuple[int, int], ...], Window]()
    for line in lines:
        window = Window.read(line)
        found.setdefault(window.events, window)
    return list(found.values())
