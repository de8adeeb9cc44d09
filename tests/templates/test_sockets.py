"""The wrap's own sockets wait as long as they are told, whatever a function sets for all."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import wrap
from wrap.net.sockets import pair, patient


@pytest.fixture
def limit() -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.01)
    yield
    socket.setdefaulttimeout(before)


@pytest.mark.usefixtures("limit")
def test_they_block_in_every_process_that_gets_their_descriptors() -> None:
    made = [*pair(), *pair(socket.SOCK_SEQPACKET), patient(socket.socket())]
    try:
        assert {each.gettimeout() for each in made} == {None}
        assert all(os.get_blocking(each.fileno()) for each in made)
    finally:
        for each in made:
            each.close()


def test_no_other_module_makes_pairs() -> None:
    sources = Path(wrap.__path__[0]).rglob("*.py")
    made = {each.name for each in sources if "socket.socketpair(" in each.read_text()}
    # That of a fork server wakes it, and never blocks.
    assert made == {"sockets.py", "fork_server.py"}
