"""When a wrap takes requests: before it can answer them, and, behind a watchdog, a while longer."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

HANDLERS = {"f": "def handle(req):\n    return req\n"}


def test_a_wrap_listens_before_its_runtime_is_imported_and_then_says_so(
    wrap_image: Any,
    with_own_runtime: Any,
    run_to_end: Any,
    in_background: Any,
    eventually: Any,
    free_port: int,
    tmp_path: Path,
) -> None:
    """Kubernetes sends requests as soon as the file is there, and ends the wrap before."""
    go_on = tmp_path / "go on"
    image = wrap_image(HANDLERS, entry={"output": 0})
    bootstrap = with_own_runtime(image) / "bootstrap.py"
    bootstrap.unlink()
    bootstrap.write_text(
        "import pathlib, time\n"
        f"while not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.01)\n"
        "def main(*_): pass\n"
    )
    settings = {"port": str(free_port), "suppress_lock": "true", "TMPDIR": str(tmp_path)}
    ended = in_background(run_to_end, image, **settings)
    assert eventually((tmp_path / ".lock").exists)
    with socket.socket() as channel:
        assert channel.connect_ex(("127.0.0.1", free_port)) == 0
    go_on.touch()
    assert ended.result() == (0, "")


def test_what_no_watchdog_leaves_to_a_wrap_it_does_not_do(
    start: Any, wrap_image: Any, free_port: int, tmp_path: Path
) -> None:
    start(wrap_image(HANDLERS, entry={"output": 0}), port=str(free_port), TMPDIR=str(tmp_path))
    assert not (tmp_path / ".lock").exists()


def test_a_wrap_that_is_to_end_takes_what_its_watchdog_still_hands_on(
    start: Any, wrap_image: Any
) -> None:
    server = start(wrap_image(HANDLERS, entry={"output": 0}), WRAP_LINGER_MS="600000")
    server.process.send_signal(signal.SIGTERM)
    answers = [server.request(body=str(number)).text for number in range(50)]
    assert answers == [str(number) for number in range(50)]


def test_a_wrap_that_has_lingered_ends(start: Any, wrap_image: Any) -> None:
    assert start(wrap_image(HANDLERS, entry={"output": 0}), WRAP_LINGER_MS="1").terminate() == 0
