"""What Node.js handlers get and answer; `node_answers.json` has the answers of the templates.

Run as a program it records that anew::

    python node_answers.py templates/template > node_answers.json

Its argument is the folder of that name in a clone of github.com/openfaas/templates, in whose
folders node20 and node22 `npm install` has run.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_suffix(".json")
#: The styles of handlers that are recorded, and the template of each.
STYLES = {"node": "node20", "node22": "node22"}
#: The handler.
HANDLER = Path(__file__).with_suffix(".js").read_text()
_JSON, _TEXT, _FORM = "application/json", "text/plain", "application/x-www-form-urlencoded"
_LIMIT = 100 * 1024
Asked = tuple[str, str, bytes | None, dict[str, str]]


def _bodies() -> dict[str, tuple[str | None, bytes]]:
    named: dict[str, tuple[str | None, bytes]] = {
        "no type": (None, b'{"a":1}'),
        "no type, empty": (None, b""),
        "an empty type": ("", b"x"),
        "no type at all": ("nonsense", b"x"),
    }
    texts = (b'{"a":[1]}', b"", b"{a", b"hello <b>", b"5", b'"a"', b"null", b" \n[1]", b"  ")
    texts += (b'\xef\xbb\xbf{"a":1}', b'{"a":"\xff"}', b'{"__proto__":{"x":1},"a":1,"a":2}')
    named |= {f"JSON {text!r}": (_JSON, text) for text in texts}
    for kind, body in (
        (f"{_JSON}; charset=utf-8", '{"a":"é"}'.encode()),
        ("Application/JSON", b'{"a":1}'),
        (f"{_JSON}; charset=iso-8859-1", b"{}"),
        (f"{_JSON}; charset=utf-16le", '{"a":"é"}'.encode("utf-16-le")),
        (f"{_JSON}; charset=utf-99", b"{}"),
        ("application/vnd.api+json", b"{}"),
        (_TEXT, "é".encode()),
        (_TEXT, b"\xff"),
        (_TEXT, b"\xef\xbb\xbfa"),
        ("text/json", b"{}"),
        (f"{_TEXT}; charset=iso-8859-1", b"\xe9\x80"),
        (f'{_TEXT}; charset="Shift_JIS"', "日".encode("shift_jis")),
        (f"{_TEXT}; charset=nonsense", b"a"),
        (f"{_FORM}; charset=iso-8859-1", b"a=%E9"),
        (f"{_FORM}; charset=utf-16", b"a=1"),
        ("image/png", b"\x00\xff"),
        ("application/octet-stream", b"\x00\xff"),
        ("multipart/form-data; boundary=x", b"--x--"),
    ):
        named[f"{kind} {body!r}"] = (kind, body)
    for form in (
        "a=1&b=x+y&c=%C3%A9&a=2",
        "a[b]=1&a[c][d]=2&e[]=1&e[]=2&f[1]=b&f[0]=a&g[2]=z",
        "a&b=&=c&&",
        "a[b][c][d][e][f][g][h]=1",
        "a[99]=0&a[100]=1&c[x]=1&c=2&d=1&d[x]=2&e[]=&a[y]=3",
        "a[__proto__]=2&hasOwnProperty=3&__proto__=4",
        "",
    ):
        named[f"form {form}"] = (_FORM, form.encode())
    named["form of many"] = (_FORM, b"&".join(b"a%d=" % each for each in range(1001)))
    for kind, frame in ((_JSON, b'["%b"]'), (_TEXT, b"%b"), (_FORM, b"a=%b"), ("image/png", b"%b")):
        for size in (_LIMIT, _LIMIT + 1):
            named[f"{size} bytes of {kind}"] = (kind, frame % (b"a" * (size - len(frame) + 2)))
    return named


def requests() -> dict[str, Asked]:
    """Name -> method, target, body and headers."""
    found: dict[str, Asked] = {
        name: ("POST", "/", body, {} if kind is None else {"Content-Type": kind})
        for name, (kind, body) in _bodies().items()
    }
    for coding, kind, body in (
        ("gzip", _JSON, gzip.compress(b'{"a":1}', mtime=0)),
        ("gzip", _TEXT, b"xyz"),
        ("gzip", _TEXT, gzip.compress(b"a" * 2 * _LIMIT, mtime=0)),
        ("deflate", _TEXT, zlib.compress(b"abc")),
        ("identity", _TEXT, b"xyz"),
        ("br", _TEXT, b"x"),
        ("zstd", _TEXT, b"x"),
    ):
        given = {"Content-Type": kind, "Content-Encoding": coding}
        found[f"{coding} {kind} {len(body)}"] = ("POST", "/", body, given)
    for target in (
        "/a/b?x=1&y=2&y=3&z=%C3%A9+b",
        "/?a[b]=1&c[]=2&d%5Be%5D=3&f[a][b][c][d][e][f][g]=4",
        "/?",
        "/a%20b/c%2Fd;e=f?x",
        "//a//b/",
        "/a?b=c?d=e",
        "/?a=%E0%A4%A&b=%zz",
    ):
        found[target] = ("POST", target, b"x", {"Content-Type": _TEXT})
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        found[f"{method} without a body"] = (method, "/", None, {"X-Own": "a", "Cookie": "a=1"})
    return found


def asked(port: int, request: Asked) -> list[Any]:
    """Status, content type, other headers and body; of a page, the name of the error alone."""
    method, target, body, headers = request
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        text = response.read().decode("latin-1")
    finally:
        connection.close()
    left_out = ("connection", "content-length", "content-type", "date", "etag", "keep-alive")
    named = sorted([name.lower(), value] for name, value in response.getheaders())
    named = [[name, value] for name, value in named if name not in (*left_out, "server")]
    kind = response.headers["Content-Type"]
    if response.status in (400, 413, 415) and not headers.get("X-Do"):
        return [response.status, text.rpartition("<pre>")[2].partition(":")[0]]
    return [response.status, kind, named, text]


def ways(folder: Path) -> dict[str, Asked]:
    """Name -> the request that has the handler answer so."""
    program = "console.log(JSON.stringify(require('./handler').ways))"
    said = subprocess.check_output(["node", "-e", program], cwd=folder)
    kind = {"Content-Type": _TEXT}
    return {each: ("POST", "/", b"x", {**kind, "X-Do": each}) for each in json.loads(said)}


def _started(root: Path, environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {**os.environ, **environment, "http_port": str(port)}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        ["node", "index.js"], cwd=root, env=given, stdout=quiet, stderr=quiet
    )
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except ConnectionRefusedError:
            time.sleep(0.02)


def _recorded(template: Path, environment: dict[str, str], asks_all: bool) -> dict[str, list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(template / "node_modules", root / "node_modules")
        shutil.copy(template / "index.js", root)
        (root / "function").mkdir()
        (root / "function" / "handler.js").write_text(HANDLER)
        process, port = _started(root, environment)
        try:
            found = requests() | (ways(root / "function") if asks_all else {})
            return {name: asked(port, request) for name, request in found.items()}
        finally:
            process.kill()
            process.wait()


def main(templates: str) -> None:
    """Write what the templates answer."""
    answers = {}
    for style, name in STYLES.items():
        folder = Path(templates) / name
        answers[style] = _recorded(folder, {}, True)
        answers[f"{style} raw"] = _recorded(folder, {"RAW_BODY": "true"}, False)
    json.dump({"template": "openfaas/templates", "answers": answers}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main(sys.argv[1])
