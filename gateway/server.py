"""The gateway: connects its parts, accepts connections, and shuts everything down in order."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import resource
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aiohttp import web

from chiron.gateway.access import Credentials, is_loopback, refuse_cross_site
from chiron.gateway.backend import BACKLOG, Backend
from chiron.gateway.connections import READ_AHEAD_BYTES
from chiron.gateway.docker_backend import DockerBackend
from chiron.gateway.function_user import DEFAULT, FunctionUser
from chiron.gateway.images import ImageStore, images_folder
from chiron.gateway.metrics import Metrics
from chiron.gateway.names import PASSWORD_VARIABLE, USER_VARIABLE, BackendName
from chiron.gateway.process_backend import Launcher, ProcessBackend
from chiron.gateway.proxy import WHOLE_BODY_BYTES, Proxy
from chiron.gateway.registry import Registry
from chiron.gateway.replica import LAST_DRAIN_S
from chiron.gateway.revision import Host
from chiron.gateway.secret_store import SecretStore
from chiron.gateway.system_api import system_app
from chiron.workflow.errors import ChironError

_STARTS_PER_CORE = 2
#: The most connections: each may buffer a whole body, and needs a second descriptor downstream.
_MOST_CONNECTIONS = 4096
#: Seconds that a refused connection has to send its request.
_PATIENCE_S = 1.0
_FULL = b"the gateway has as many connections as it can take: try again later\n"
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_FULL), _FULL)
)


@dataclass(frozen=True)
class Settings:
    """The settings of a gateway."""

    host: str = "127.0.0.1"
    #: 0 for a free port.
    port: int = 8080
    #: The kind of replicas.
    backend: BackendName = "process"
    #: Folder of the image store; ``$CHIRON_HOME/images`` if None.
    images: Path | None = None
    #: The credentials that /system/* requires; none if None.
    credentials: Credentials | None = None
    #: The timeout of a function's start in seconds.
    ready_s: float = 60.0
    #: Seconds after which a connection is closed if it has no whole head of a request, or if its
    #: client stops reading the answer.
    idle_s: float = 60.0
    #: The user that functions run as if root runs the gateway.
    user: str = DEFAULT


class Gateway:
    """A gateway in the running event loop, from `start` to `stop`."""

    def __init__(self, settings: Settings) -> None:
        self.url = ""
        self.supervisor_lost = asyncio.Event()
        self._settings = settings
        self._runners: list[web.AppRunner] = []
        self._entrances: list[asyncio.Server] = []
        self._registry: Registry
        self._proxy: Proxy

    async def start(self) -> str:
        """Listen; return the URL. ChironError: the port or the backend is not available."""
        settings = self._settings
        # A container has a user of its own.
        user = FunctionUser.choose(settings.user) if settings.backend == "process" else None
        listener = listen(settings.host, settings.port, settings.credentials)
        port = listener.getsockname()[1]
        # A host for all addresses includes loopback.
        address = "127.0.0.1" if settings.host in ("", "0.0.0.0") else settings.host  # noqa: S104
        self.url = f"http://{address}:{port}"
        scratch = Path(tempfile.mkdtemp(prefix="chiron-gateway-"))
        try:
            backend = await self._open_backend(port, scratch, user)
        except ChironError:
            listener.close()
            scratch.rmdir()
            raise
        cores = len(os.sched_getaffinity(0))
        host = Host(
            backend=backend,
            secrets=SecretStore(shared=backend.name == "docker", user=user),
            scratch=scratch,
            ready_s=settings.ready_s,
            starting=asyncio.Semaphore(_STARTS_PER_CORE * cores),
        )
        self._registry = Registry(host)
        metrics = Metrics()
        self._proxy = Proxy(self._registry, metrics)
        await self._serve(self._application(metrics), listener)
        if backend.inner_listener:
            await self._serve(self._function_urls(), backend.inner_listener)
        return self.url

    async def stop(self) -> None:
        """Accept no more connections, let calls end, then end every function's replicas."""
        for entrance in self._entrances:
            entrance.close()
        await self._registry.close()
        await self._proxy.close()
        for runner in self._runners:
            await runner.cleanup()
        await self._registry.host.backend.close()

    async def _open_backend(self, port: int, scratch: Path, user: FunctionUser | None) -> Backend:
        lost = self.supervisor_lost.set
        if self._settings.backend == "docker":
            return await DockerBackend.open(self.url, port, scratch, lost)
        images = ImageStore(self._settings.images or images_folder())
        if user:
            scratch.chmod(0o711)
        launcher = Launcher.open("chiron.gateway.supervisor", scratch, lost)
        return ProcessBackend(launcher, images, self.url, user)

    async def _serve(self, app: web.Application, listener: socket.socket) -> None:
        """Accept connections: as many as descriptors allow, and close stuck and idle ones."""
        idle_s = self._settings.idle_s
        runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=LAST_DRAIN_S,
            keepalive_timeout=idle_s,
            read_bufsize=READ_AHEAD_BYTES,
            # Bodies are forwarded as they are encoded, under their original headers.
            auto_decompress=False,
            # A call is cancelled with its client's connection, whatever it waits for.
            handler_cancellation=True,
        )
        await runner.setup()
        self._runners.append(runner)
        server = cast(web.Server, runner.server)
        server.request_handler = self._proxy.ahead_of(server.request_handler)
        # Accepted sockets inherit this timeout, after which the kernel closes a stuck connection.
        stuck_ms = math.ceil(1000 * idle_s)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stuck_ms)
        _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        most = min(_MOST_CONNECTIONS, descriptors // 2)

        def let_in() -> asyncio.BaseProtocol:
            return server() if len(server.connections) < most else _Refusal()

        loop = asyncio.get_running_loop()
        self._entrances.append(await loop.create_server(let_in, sock=listener, backlog=BACKLOG))

    def _function_urls(self) -> web.Application:
        """Return the application with the URLs that functions may call."""
        app = web.Application(client_max_size=WHOLE_BODY_BYTES)
        for below in ("", "/{path:.*}"):
            app.router.add_route("*", "/function/{name}" + below, self._proxy.invoke)
            app.router.add_post("/async-function/{name}" + below, self._proxy.accept)
        return app

    def _application(self, metrics: Metrics) -> web.Application:
        registry = self._registry

        async def healthy(request: web.Request) -> web.Response:
            return web.Response(text="OK")

        async def scrape(request: web.Request) -> web.Response:
            try:
                refuse_cross_site(request.method, request.headers.get)
            except ChironError as error:
                return web.Response(status=error.status, text=error.message + "\n")
            text = metrics.render(registry)
            return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})

        app = self._function_urls()
        app.router.add_get("/healthz", healthy)
        app.router.add_get("/metrics", scrape)
        app.add_subapp("/system", system_app(registry, metrics, self._settings.credentials))
        return app


class _Refusal(asyncio.Protocol):
    """Answers any request with 503 and closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Abort it later: a client that is cut off while sending does not see the answer."""
        self._transport = cast(asyncio.Transport, transport)
        asyncio.get_running_loop().call_later(_PATIENCE_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(_REFUSAL)
            self._transport.close()


def listen(host: str, port: int, credentials: Credentials | None) -> socket.socket:
    """Return a listening socket, on loopback if without credentials; ChironError with the fix."""
    if credentials is None and not is_loopback(host):
        raise ChironError(
            "no-credentials",
            f"whoever reaches {host or 'all addresses'} could run code here: listen on 127.0.0.1, "
            f"or set {USER_VARIABLE} and {PASSWORD_VARIABLE}",
        )
    try:
        return socket.create_server((host, port), backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} is in use: stop what listens there, or choose another port"
            raise ChironError("port-in-use", message) from error
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise ChironError("cannot-listen", message) from error
