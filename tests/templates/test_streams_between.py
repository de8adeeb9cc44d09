"""Streams from a wrap to another one, whichever of them ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.templates.streams import (
    LARGE_READER,
    LARGE_WRITER,
    READER,
    TASKS,
    WRITER,
    declared,
    of,
)


class TwoWraps:
    """The writer in one wrap and the reader in another; either is the entry."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path) -> None:
        self._image, self._start, self._gateway, self._folder = image, start, gateway, folder
        self.servers: dict[str, Any] = {}
        self._images: dict[str, Path] = {}
        (folder / "secrets").mkdir()
        (folder / "secrets" / "chiron-direct").write_text("a secret")

    def begin(self, home: str, further: bool, secret: bool = True, **fields: Any) -> None:
        self._settings = {"secrets_dir": str(self._folder / "secrets")} if secret else {}
        self._settings["pool_concurrency"] = "1"
        handlers = {"writer": LARGE_WRITER, "reader": LARGE_READER}
        for task, name in ((WRITER, "writer"), (READER, "reader")):
            other = {WRITER: READER, READER: WRITER}[task]
            remotes = {f"test-{TASKS[other]}": {other: TASKS[other]}}
            its = declared(tasks={task: name}, remotes=remotes) | fields
            if name != home:
                its["entry"] = None
            self._images[name] = self._image(
                {name: handlers[name]},
                [[], [task]] if further else [[task]],
                name=f"test-{name}",
                attempts=2,
                **its,
            )
            self.start(name)

    def start(self, name: str) -> None:
        server = self._start(
            self._images[name],
            gateway_url=self._gateway.url,
            chiron_trace_key="key",
            **self._settings,
        )
        self.servers[name] = server
        self._gateway.ports[f"test-{name}"] = server.port


@pytest.fixture
def two_wraps(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path) -> TwoWraps:
    folder = tmp_path / "two"
    folder.mkdir()
    return TwoWraps(wrap_image, start, gateway, folder)


@pytest.mark.parametrize(("home", "further"), [("writer", True), ("reader", False)])
def test_between_wraps_it_goes_over_a_connection_of_its_own(
    home: str,
    further: bool,
    two_wraps: TwoWraps,
    gateway: Any,
    eventually: Callable[..., bool],
) -> None:
    two_wraps.begin(home, further)
    for megabytes in (0, 1, 16):
        assert two_wraps.servers[home].request(body=str(megabytes)).text == of(megabytes)
    assert gateway.calls == 0
    before = {name: server.descriptors() for name, server in two_wraps.servers.items()}
    for _ in range(20):
        assert two_wraps.servers[home].request(body="1").text == of(1)
    for name, server in two_wraps.servers.items():
        assert eventually(lambda s=server, n=name: s.descriptors() <= before[n])


def test_executions_do_not_wait_for_ends_of_each_other(
    two_wraps: TwoWraps, in_background: Any
) -> None:
    """A wrap has a worker for one, and it need not be the same one that the other wrap runs."""
    two_wraps.begin("writer", further=True, mechanism="pool")
    answers = [in_background(two_wraps.servers["writer"].request, body="8") for _ in range(12)]
    assert [answer.result().text for answer in answers] == [of(8)] * 12


def test_without_connections_it_is_written_before_it_is_read(
    two_wraps: TwoWraps, gateway: Any
) -> None:
    two_wraps.begin("reader", further=True, secret=False)
    for megabytes in (0, 8):
        assert two_wraps.servers["reader"].request(body=str(megabytes)).text == of(megabytes)
    assert gateway.calls > 0
    traced = two_wraps.servers["reader"].request(body="0", X_Chiron_Trace="key").json
    ((begun_ms, ended_ms),) = (
        span["reads_ms"] for span in traced["timeline"]["spans"] if "reads_ms" in span
    )
    assert 0 < begun_ms <= ended_ms


def test_a_wrap_that_does_not_come_back_is_named(two_wraps: TwoWraps) -> None:
    home, killed = "writer", "reader"
    two_wraps.begin(home, further=True)
    assert two_wraps.servers[home].request(body="1").text == of(1)
    two_wraps.servers[killed].process.kill()
    two_wraps.servers[killed].process.wait()
    answer = two_wraps.servers[home].request(body="1", X_Chiron_Timeout="2")
    assert answer.status == 504
    assert f"test-{killed} ended, and was not there again" in answer.text
