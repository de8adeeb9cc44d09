"""The gateway: puts the parts together, listens, and ends them in order."""

from __future__ import annotations

import asyncio
import errno
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from gateway import paths
from gateway.auth import Credentials
from gateway.background import AsyncCalls
from gateway.cores import Cores
from gateway.errors import GatewayError
from gateway.images import ImageStore
from gateway.launcher import Launcher
from gateway.metrics import Metrics
from gateway.proxy import WHOLE_BODY_BYTES, Proxy
from gateway.registry import Registry
from gateway.replica import Times
from gateway.revision import Host
from gateway.secret_store import SecretStore
from gateway.system_api import system_app

_BACKLOG = 1024
_STARTS_PER_CORE = 2
_LAST_TIMES = Times(drain=5.0, stop=5.0)


@dataclass(frozen=True)
class Settings:
    """How to run a gateway.

    Attributes:
        port: 0 takes a free one.
        images: folder of the image store; ``$CHIRON_HOME/images`` if None.
        credentials: what /system/* asks for; nothing if None.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    images: Path | None = None
    credentials: Credentials | None = None
    times: Times = field(default_factory=Times)


class Gateway:
    """A gateway in the running event loop, between `start` and `stop`."""

    def __init__(self, settings: Settings) -> None:
        self.url = ""
        self.guardian_lost = asyncio.Event()
        self._settings = settings
        self._site: web.SockSite
        self._runner: web.AppRunner
        self._registry: Registry
        self._calls: AsyncCalls
        self._launcher: Launcher

    async def start(self) -> str:
        """Listen; returns the URL. Raises GatewayError if the port cannot be had."""
        settings = self._settings
        listener = listen(settings.host, settings.port)
        port = listener.getsockname()[1]
        self.url = f"http://{_reachable(settings.host)}:{port}"
        scratch = Path(tempfile.mkdtemp(prefix="chiron-gateway-"))
        self._launcher = Launcher.open(scratch, self.guardian_lost.set)
        cores = Cores()
        host = Host(
            launcher=self._launcher,
            cores=cores,
            secrets=SecretStore(),
            scratch=scratch,
            url=self.url,
            times=settings.times,
            starting=asyncio.Semaphore(_STARTS_PER_CORE * cores.count),
        )
        self._registry = Registry(host, ImageStore(settings.images or paths.images()))
        self._runner = web.AppRunner(
            self._application(), access_log=None, shutdown_timeout=_LAST_TIMES.drain
        )
        await self._runner.setup()
        self._site = web.SockSite(self._runner, listener, backlog=_BACKLOG)
        await self._site.start()
        return self.url

    async def stop(self) -> None:
        """Take no more connections, let calls end, end every function's processes."""
        await self._site.stop()
        await self._registry.close(_LAST_TIMES)
        await self._calls.close()
        await self._runner.cleanup()
        await self._launcher.close()

    def _application(self) -> web.Application:
        metrics = Metrics()
        registry = self._registry
        proxy = Proxy(registry, metrics)
        calls = self._calls = AsyncCalls(registry, metrics)

        async def healthy(request: web.Request) -> web.Response:
            return web.Response(text="OK")

        async def scrape(request: web.Request) -> web.Response:
            text = metrics.render(registry)
            return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})

        app = web.Application(client_max_size=WHOLE_BODY_BYTES)
        app.router.add_route("*", "/function/{name}", proxy.invoke)
        app.router.add_route("*", "/function/{name}/{path:.*}", proxy.invoke)
        app.router.add_post("/async-function/{name}", calls.accept)
        app.router.add_post("/async-function/{name}/{path:.*}", calls.accept)
        app.router.add_get("/healthz", healthy)
        app.router.add_get("/metrics", scrape)
        app.add_subapp("/system", system_app(registry, metrics, self._settings.credentials))
        return app


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises GatewayError naming the port and the mend."""
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} is in use: stop what listens there, or choose another port"
            raise GatewayError("port-in-use", message) from error
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise GatewayError("cannot-listen", message) from error


def _reachable(host: str) -> str:
    """The address to give to functions: a host that stands for all of them is also loopback."""
    return "127.0.0.1" if host in ("", "0.0.0.0") else host  # noqa: S104
