"""Connections to another process of this machine."""

from __future__ import annotations

import socket

from chiron.workflow.errors import ChironError


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection on the loopback, without Nagle's delay."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    for each in (ours, theirs):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours, theirs


def await_byte(channel: socket.socket) -> None:
    """Wait for the byte by which the other process acknowledges; raises ``died`` at its end."""
    if not channel.recv(1):
        raise ChironError("died", "the other process of a measurement has ended", status=500)
