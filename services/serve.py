"""Serves the application on waitress until SIGTERM or SIGINT: to others only with a secret."""

from __future__ import annotations

import errno
import signal
import socket
import threading
from types import FrameType
from typing import NoReturn, cast

from flask import Flask

from chiron.gateway.access import is_loopback
from chiron.openfaas.credentials import Credentials
from chiron.services import HOST, PORT, fork_server
from chiron.services.connections import Server
from chiron.services.host import Host
from chiron.services.logs import configure_logs
from chiron.workflow.errors import ChironError

_BACKLOG = 1024


def listen(
    host: str = HOST, port: int = PORT, *, secret: Credentials | None = None
) -> socket.socket:
    """Return a socket that listens on `host` and `port`, before anything else is started.

    Raises ``port-in-use``; ``no-secret`` if other machines could use the services without a secret;
    ``cannot-listen``.
    """
    if secret is None and not is_loopback(host):
        raise ChironError(
            "no-secret",
            f"any client that reaches {host} could run code here: serve on {HOST}, or ask for a "
            "secret with --basic-auth-dir or --token-file",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ChironError(
                "port-in-use",
                f"port {port} of {host} is in use: end what listens there "
                f"(ss -ltnp sport = :{port} names it), or choose another port",
            ) from None
        message = f"cannot listen on port {port} of {host}: {error.strerror}"
        raise ChironError("cannot-listen", message) from None


def serve(
    listener: socket.socket,
    app: Flask,
    secret: Credentials | None = None,
    ended: threading.Event | None = None,
) -> None:
    """Answer requests on `listener` and run jobs until SIGTERM or SIGINT; closes `listener`.

    When `ended` is set, the server ends within a second.

    A running job is then interrupted, and removes what it deployed. A client without the `secret`
    that `app` requires is refused before the body is read.
    """
    configure_logs()
    fork_server.prepare()
    host = cast(Host, app.extensions["chiron"])
    with listener, host.running():
        server = Server(app, listener, secret)
        before = {number: signal.signal(number, _stop) for number in _SIGNALS}
        try:
            server.run(ended or threading.Event())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            server.close()


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit  # waitress finishes its answers, and returns
