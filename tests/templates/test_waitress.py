"""Wraps are served with waitress's internals, and so with the one version that is tested."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import socket
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from packaging.requirements import Requirement
from wrap.http.server.accepting import Hooks, Server
from wrap.http.server.dispatcher import Dispatcher

ROOT = Path(__file__).resolve().parents[2]
#: The modules of which `wrap/http/server` and `services/connections.py` override and read
#: private parts, and what their sources hash to. Where one changes, read what has changed in it,
#: look at what overrides it, and only then write the new hash here.
INTERNALS = {
    "adjustments": "f1ed00a8217a79f5",
    "buffers": "50bf15244d9056a9",
    "channel": "6b44713fd38f8917",
    "parser": "f3c294637d49ced3",
    "receiver": "e4b4903d525a6d6a",
    "server": "93fa60086cb5b979",
    "task": "fc30d7eb4fde6134",
    "utilities": "d7d243c4c848323e",
    "wasyncore": "ac7821b11b192a19",
}


@pytest.mark.parametrize("template", ["plain", "python3-wrap"])
def test_templates_and_chiron_ask_for_the_version_that_is_tested(template: str) -> None:
    tested = f"waitress=={metadata.version('waitress')}"
    listed = (ROOT / "templates" / template / "requirements.txt").read_text().split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirements in (listed, project):
        assert [line for line in requirements if Requirement(line).name == "waitress"] == [tested]


@pytest.mark.parametrize("module", INTERNALS)
def test_the_internals_that_are_overridden_are_the_known_ones(module: str) -> None:
    source = inspect.getsource(importlib.import_module(f"waitress.{module}"))
    assert hashlib.sha256(source.encode()).hexdigest()[:16] == INTERNALS[module]


def app(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "4")])
    return [b"here"]


class Served:
    """A server whose requests wait until a test serves them, and what wakes its loop then."""

    def __init__(self, listener: socket.socket) -> None:
        self.begun: list[Callable[[], None]] = []
        dispatcher = Dispatcher(self.begun.append)
        self.server = Server(app, listener, 1 << 20, dispatcher, Hooks())
        dispatcher.set_thread_count(1)
        self.wakes = self.server.trigger.pull_trigger = Mock()
        self.client = socket.create_connection(listener.getsockname())

    def asked(self, head: str = "") -> Any:
        """Return the connection, whose request has been read and not served."""
        self.begun.clear()
        self.client.sendall(f"GET / HTTP/1.1\r\nHost: h\r\n{head}\r\n".encode())
        while not self.begun:
            self.server.turn(1)
        (channel,) = self.server.active_channels.values()
        channel.send = Mock(wraps=channel.send)
        self.wakes.reset_mock()
        return channel


@pytest.fixture
def served() -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = Served(listener)
        with served.client:
            yield served
        for each in list(served.server._map.values()):
            each.close()


def test_a_small_answer_is_one_send_and_wakes_nobody_but_its_client(served):
    for _ in range(2):
        channel = served.asked()
        served.begun[0]()
        (sent,) = (bytes(call.args[0]) for call in channel.send.call_args_list)
        assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
        assert sent.endswith(b"\r\n\r\nhere")
        assert served.client.recv(1 << 16) == sent
        assert not served.wakes.called


def test_the_loop_is_woken_to_close_a_connection_and_to_read_one_that_it_left_out(served):
    channel = served.asked()
    channel.total_outbufs_len = 1
    assert not channel.readable()
    channel.total_outbufs_len = 0
    served.begun[0]()
    assert served.wakes.called
    served.asked("Connection: close\r\n")
    served.begun[0]()
    assert served.wakes.called


def test_a_head_whose_body_is_left_out_is_sent(served, monkeypatch):
    def empty(_: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
        start_response("204 No Content", [])
        return [b"left out"]

    monkeypatch.setattr(served.server, "_app", empty)
    channel = served.asked()
    served.begun[0]()
    (sent,) = (bytes(call.args[0]) for call in channel.send.call_args_list)
    assert sent.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert sent.endswith(b"\r\n\r\n")
