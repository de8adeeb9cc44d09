"""Asks for behaviours; `alone.json` has what the OpenFaaS templates answer.

Run as a program it records the answers anew::

    python alone.py python-flask-template [FAMILY ...] > alone.json

Its argument is a clone of github.com/openfaas/python-flask-template. Of a recording that names
families, the others' answers are those that are there.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from behaviour import URL, Behaviour, Family, Request

ALONE = Path(__file__).with_suffix(".json")
#: Headers that differ from server to server, or from answer to answer.
_OF_THE_SERVER = {"Date", "Server", "Via", "Connection", "Last-Modified"}
#: How long an answer may take, in seconds. Some that the templates never send are recorded.
BOUND_S, RECORDED_BOUND_S = 60.0, 10.0


def answers(port: int, behaviour: Behaviour, bound_s: float = BOUND_S) -> Any:
    """Status, headers and body of each answer; or the statuses, and how many bodies differ."""
    ask = partial(_answer, port, bound_s)
    if behaviour.at_once:
        with ThreadPoolExecutor(len(behaviour.requests)) as threads:
            found = list(threads.map(ask, behaviour.requests))
    else:
        found = [ask(each) for each in behaviour.requests]
    if behaviour.varies:
        return {
            "statuses": sorted({each[0] for each in found}),
            "different": len({each[2] for each in found}),
        }
    return found


def _answer(port: int, bound_s: float, request: Request) -> list[Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=bound_s)
    try:
        body = request.body.encode() if isinstance(request.body, str) else request.body
        connection.request(request.method, request.path, body, dict(request.headers))
        response = connection.getresponse()
        pairs = response.getheaders()
        text = response.read().decode("latin-1")
    except (http.client.HTTPException, OSError) as error:
        return ["no answer", [], type(error).__name__]
    finally:
        connection.close()
    headers = sorted(
        [name, ", ".join(sorted(value.split(", "))) if name == "Allow" else value]
        for name, value in pairs
        if name not in _OF_THE_SERVER
    )
    return [response.status, headers, text]


class _Items(BaseHTTPRequestHandler):
    """GET /item/N answers N; connections are kept."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body does not wait until its head is acknowledged

    def do_GET(self) -> None:
        body = self.path.rpartition("/")[2].encode()
        if body != b"hello":
            threading.Event().wait(0.05)  # requests of other processes arrive meanwhile
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def items() -> Iterator[Mapping[str, str]]:
    """The setting that names a keep-alive server which answers as `_Items`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Items)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield {URL: f"http://127.0.0.1:{server.server_address[1]}"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _recorded(template: Path, family: Family, settings: Mapping[str, str]) -> dict[str, Any]:
    from handler_answers import serving

    files = {"handler.py": family.handler, **family.files}
    with serving(template, files, {**settings, **family.settings}) as port:
        return {
            name: answers(port, each, RECORDED_BOUND_S) for name, each in family.behaviours.items()
        }


def main() -> None:
    """Record the answers of the templates in the clone that the command line names."""
    sys.path.append(str(Path(__file__).parents[1]))
    from families import FAMILIES
    from handler_answers import STYLES, revision

    clone, *names = Path(sys.argv[1]), *sys.argv[2:]
    found = json.loads(ALONE.read_text())["answers"] if names else {}
    with items() as settings:
        for name in names or FAMILIES:
            family = FAMILIES[name]
            print(name, file=sys.stderr)
            template = clone / "template" / STYLES[family.style]
            found[name] = _recorded(template, family, settings)
    kept = {name: found[name] for name in FAMILIES}
    json.dump(revision(clone) | {"answers": kept}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
