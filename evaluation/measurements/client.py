"""One client for every planner, in one thread: sends a request along its route, call by call.

Load generators such as vegeta, k6, wrk and hey call one URL. In planner one-to-one a request is as
many calls as the workflow has tasks, so the same client has to do for all planners.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import quote

import aiohttp

from deployment.invoke import Call, Route
from deployment.measure import Check
from workflow.data import bytes_of, resolve, text_of
from workflow.errors import ChironError

#: Requests of a window below which it gives no figure.
FEWEST = 100
#: Longest that one call may take, in seconds; what is slower has failed.
TIMEOUT_S = 20.0


class RequestError(Exception):
    """A request that failed: no answer, another status than 200, or a wrong answer."""


class Client(NamedTuple):
    """Sends the request `body` along `route` of the gateway at `url`."""

    session: aiohttp.ClientSession
    url: str
    route: Route
    body: bytes
    check: Check

    async def request(self) -> None:
        """Send one request; RequestError where it fails, or the answer is not the expected one."""
        text, outputs = text_of(self.body), dict[str, str]()
        try:
            for stage in self.route.stages:
                answers = await asyncio.gather(*(self._call(c, text, outputs) for c in stage))
                outputs |= {call.task: a for call, a in zip(stage, answers, strict=True)}
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RequestError(type(error).__name__) from None
        try:
            self.check(resolve(self.route.output, text, outputs))
        except ChironError as error:
            raise RequestError("wrong answer") from error

    async def _call(self, call: Call, text: str, outputs: dict[str, str]) -> str:
        body = bytes_of(resolve(call.source, text, outputs))
        url = f"{self.url}/function/{quote(call.function, safe='')}"
        async with self.session.post(url, data=body) as response:
            answer = await response.read()
            if response.status != 200:
                raise RequestError(f"status {response.status}")
            return text_of(answer)


@asynccontextmanager
async def client_of(url: str, route: Route, body: bytes, check: Check) -> AsyncIterator[Client]:
    """A client with connections of its own, as many as its requests need at once."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Content-Type": "application/json"},
    ) as session:
        yield Client(session, url, route, body, check)
