"""The load client of all planners, in one thread: makes a request's calls along its route.

Load generators such as vegeta, k6, wrk and hey call one URL. With planner one-to-one, a request has
a call for each task of the workflow. All planners have to be measured with the same client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import quote

import aiohttp

from chiron.deployment.function_error import function_error, timeout_error
from chiron.deployment.measure import CheckedPayload
from chiron.deployment.route import CallRequest, Route, Steps
from chiron.openfaas.function_headers import function_headers
from chiron.workflow.data import text_of
from chiron.workflow.errors import ChironError

#: The fewest requests of a window that are enough for a figure.
FEWEST = 100
#: The timeout in seconds of a call that has no timeout of its own.
TIMEOUT_S = 20.0


class RequestError(Exception):
    """A request that failed: no answer, an error status, or a wrong answer."""


class Client(NamedTuple):
    """Sends `requests`, one after another, along `route` of the gateway at `url`."""

    session: aiohttp.ClientSession
    url: str
    route: Route
    requests: Iterator[CheckedPayload]

    async def request(self) -> None:
        """Send the next request; raises RequestError if it fails or its answer is wrong."""
        payload, check = next(self.requests)
        begun = set[asyncio.Task[str]]()

        def begin(request: CallRequest) -> asyncio.Task[str]:
            task = asyncio.create_task(self._call(request))
            begun.add(task)
            return task

        try:
            output = await _followed(self.route.follow(payload.content, begin))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RequestError(type(error).__name__) from None
        except ChironError as error:
            raise RequestError(error.message) from None
        finally:
            for task in begun:  # calls that still run after an error
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)
        try:
            check(output)
        except ChironError as error:
            raise RequestError("wrong answer") from error

    async def _call(self, request: CallRequest) -> str:
        url = f"{self.url}/function/{quote(request.function, safe='')}"
        timeout_s = request.timeout_s or TIMEOUT_S
        sent = function_headers(request.body)
        try:
            async with (
                asyncio.timeout(timeout_s),
                self.session.post(url, data=request.body, headers=sent) as response,
            ):
                answer = await response.read()
        except TimeoutError:
            raise timeout_error(request.function, timeout_s) from None
        if not response.ok:
            raise function_error(request.function, response.status, answer)
        return text_of(answer)


async def _followed(steps: Steps) -> str:
    """Follow the steps of a request, and return its answer."""
    try:
        tasks, timeout_s = next(steps)
        while True:
            if tasks:
                ended, _ = await asyncio.wait(
                    tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
                )
            else:
                ended = set()
                await asyncio.sleep(timeout_s or 0.0)
            tasks, timeout_s = steps.send(ended)
    except StopIteration as end:
        answer: str = end.value
        return answer


@asynccontextmanager
async def client_of(
    url: str, route: Route, requests: Iterator[CheckedPayload]
) -> AsyncIterator[Client]:
    """Provide a client with its own connections, without a limit on their number."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield Client(session, url, route, requests)
