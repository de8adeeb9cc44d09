"""When a wrap takes requests: before it can answer them, and, behind a watchdog, a while longer."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest

HANDLERS = {"f": "def handle(req):\n    return req\n"}
#: Stands for the runtime and functions that are imported once the wrap listens.
IMPORTING = """\
import pathlib, time
while not pathlib.Path({go_on!r}).exists():
    time.sleep(0.01)
{more}
from wrap.http.server import program
def main(*_): program.show()
"""


@pytest.fixture
def importing(
    wrap_image: Any, with_own_runtime: Any, run_to_end: Any, in_background: Any, tmp_path: Path
) -> Any:
    """Starts a wrap on a port that imports until `go on` is there; ``lock`` is what probes see."""

    def start(port: int, shown_s: float, more: str = "") -> Any:
        image = wrap_image(HANDLERS, entry={"output": 0})
        runtime = with_own_runtime(image)
        for file, old, new in (
            ("bootstrap.py", None, IMPORTING.format(go_on=str(tmp_path / "go on"), more=more)),
            ("http/server/program.py", "_SHOWN_S = 1.0", f"_SHOWN_S = {shown_s}"),
        ):
            text = (runtime / file).read_text()
            (runtime / file).unlink()
            (runtime / file).write_text(new if old is None else text.replace(old, new))
        settings = {"port": str(port), "suppress_lock": "true", "TMPDIR": str(tmp_path)}
        return in_background(run_to_end, image, **settings)

    return start


def test_a_wrap_listens_before_its_runtime_is_imported_and_says_so_when_it_serves(
    importing: Any, eventually: Any, free_port: int, tmp_path: Path
) -> None:
    """Kubernetes ends a replica of the old build once the new one says so."""
    ended = importing(free_port, shown_s=600.0)

    def listens() -> bool:
        with socket.socket() as channel:
            return channel.connect_ex(("127.0.0.1", free_port)) == 0

    assert eventually(listens)
    assert not (tmp_path / ".lock").exists()
    (tmp_path / "go on").touch()
    assert ended.result() == (0, "")
    assert (tmp_path / ".lock").exists()


def test_a_wrap_that_takes_long_to_import_says_before_that_it_listens(
    importing: Any, eventually: Any, free_port: int, tmp_path: Path
) -> None:
    """Kubernetes ends a replica that has not said so for 6 s."""
    ended = importing(free_port, shown_s=0.01)
    assert eventually((tmp_path / ".lock").exists)
    (tmp_path / "go on").touch()
    assert ended.result() == (0, "")


@pytest.mark.parametrize(("shown_s", "status"), [(0.0001, 0), (600.0, 1)])
def test_what_is_told_to_end_while_it_imports_serves_first_if_probes_have_seen_it(
    importing: Any, eventually: Any, free_port: int, tmp_path: Path, shown_s: float, status: int
) -> None:
    """Requests wait in its socket then."""
    ended = importing(free_port, shown_s, more="import os; os.kill(os.getpid(), 15)")
    if status == 0:
        assert eventually((tmp_path / ".lock").exists)
    (tmp_path / "go on").touch()
    assert ended.result()[0] == status


def test_without_a_watchdog_no_lock_says_that_it_listens_and_host_is_a_functions_own_variable(
    start, wrap_image, free_port, tmp_path
):
    code = {"one": "import os\n\ndef handle(req):\n    return os.environ['host']\n"}
    image = wrap_image(code, entry={"output": 0})
    server = start(image, port=str(free_port), host="db.invalid", TMPDIR=str(tmp_path))
    assert server.request().text == "db.invalid"
    assert not (tmp_path / ".lock").exists()


def test_a_wrap_that_is_to_end_takes_what_its_watchdog_still_hands_on(start, wrap_image):
    server = start(wrap_image(HANDLERS, entry={"output": 0}), WRAP_LINGER_MS="600000")
    server.process.send_signal(signal.SIGTERM)
    answers = [server.request(body=str(number)).text for number in range(50)]
    assert answers == [str(number) for number in range(50)]
