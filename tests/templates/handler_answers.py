"""What handlers return; `handler_answers.json` has what the OpenFaaS templates answer.

Run as a program it records the answers anew::

    python handler_answers.py python-flask-template > handler_answers.json

Its argument is a clone of github.com/openfaas/python-flask-template.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_suffix(".json")
#: The handler styles of the gateway, and the template of each.
STYLES = {"flask": "python3-flask", "http": "python3-http", "http-debian": "python3-http-debian"}
#: Returns what the request's body, an expression, stands for.
HANDLER = """
import collections, dataclasses, datetime, decimal, fractions, http, io, pathlib, uuid
import flask, werkzeug
from flask import Response, abort, jsonify, make_response, redirect, request, send_file
from markupsafe import Markup
from werkzeug.exceptions import NotFound

@dataclasses.dataclass
class Point:
    x: int = 1

class Text(str):
    pass

class Dict(dict):
    pass

def fail(error):
    raise error

def application(environ, start_response):
    start_response("201 CREATED", [("X-A", "1")])
    return [b"from", b" WSGI"]

def handle({parameters}):
    return eval({text})
"""
_VALUES = """
''|'text'|'a\\nb'|'grüße'|'<p>x</p>'|'\\ud800'|Text('x')|Markup('<b>x</b>')
b''|b'text'|bytes(range(256))|b'\\xff'|bytearray(b'x')|memoryview(b'x')
None|0|7|-1.5|True|float('nan')|1j|decimal.Decimal('1.50')|fractions.Fraction(1, 3)
[]|[1, 2]|['ü', None]|[b'x']|()|('x',)|(1, 2)|{1}|range(3)
{}|{'b': 1, 'a': 'ü'}|{'a': {1}}|{'a': b'x'}|{1: 2}|{'n': float('nan')}|{'a': Point()}
{'at': datetime.datetime(2026, 1, 2, 3, 4, 5), 'd': decimal.Decimal('1.5'), 'u': uuid.UUID(int=1)}
Dict(a=1)|collections.OrderedDict(b=1, a=2)|Point()|http.HTTPStatus.OK|pathlib.PurePosixPath('a/b')
iter(['a', b'b'])|(c for c in ['a', 'ü'])|map(str, [1, 2])|io.BytesIO(b'a\\nb')|(n for n in ())
Exception('x')|ValueError|uuid.UUID(int=1)|application|NotFound()|NotFound('gone')
"""
_STATUSES = """
201|202|204|302|304|400|404|418|500|503|'201'|'202 Accepted'|http.HTTPStatus.CREATED|None
"""
_HEADERS = """
{}|[]|()|None|{'X-A': '1'}|{'X-A': 1}|{'X-A': None}|{'X-A': 'a\\nb'}|{'X-A': ['1', '2']}
[('X-A', '1'), ('X-A', '2')]|(('X-A', '1'),)|{'Content-Type': 'text/csv'}
{'content-type': 'image/png'}
{'Content-Type': ''}
{'Content-Type': 'application/json'}|{'Content-type': 'application/octet-stream'}
{'Set-Cookie': 'a=1'}|{'Content-Type': 'application/octet-stream'}|{'Location': '/there'}
{1: 2}|Dict(X_A='1')|werkzeug.datastructures.Headers([('X-A', '1'), ('X-A', '2')])
"""
_RESPONSES = """
Response('a,b\\n', mimetype='text/csv')|Response(b'\\xff\\x00', 201)|Response()|Response(['a', 'b'])
Response(iter(['a', 'b']), mimetype='text/plain')|Response('x', 404)
Response('x', headers={'X-A': '1'})|(Response('x', 201), 202)|Response({'a': 1, 'b': 2})
Response('x', headers=[('Content-Type', 'text/csv'), ('Content-Type', 'text/plain')])
(Response('x'), {'X-A': '1'})|(Response('x'), 202, {'X-A': '1'})
jsonify(ok=True)|jsonify([1, 2])|jsonify('x')|jsonify(None)|(jsonify(a=1), 201)|jsonify({'ü': 'ü'})
make_response('x', 202)|make_response(('x', {'X-A': '1'}))|make_response({'a': 1})
redirect('/there')|redirect('/there', 308)|abort(404)|abort(409, 'taken')|abort(Response('x', 402))
abort(redirect('/there'))|werkzeug.wrappers.Response('x', 203)
werkzeug.wrappers.Response(iter(['x']))
send_file(io.BytesIO(bytes(range(256))), mimetype='application/octet-stream')
send_file(io.BytesIO(b'a,b'), download_name='a.csv', as_attachment=True)
fail(ValueError('x'))|fail(KeyError('x'))|fail(NotFound('x'))|request.json|request.form['x']
request.get_data()|request.method|request.is_json|dict(request.form)|('x', 200, {}, 1)|(None, 200)
flask.json.dumps({'a': 1})|flask.current_app.make_response('x')|flask.g.get('x', 'none')
flask.stream_with_context(request.method + n for n in 'ab')
('x', {'Connection': 'close'})|('x', 201, {'Transfer-Encoding': 'chunked'})|('x', {'TE': 'gzip'})
('x', {'Keep-Alive': 'max=1'})|('x', {'Upgrade': 'x'})|('x', {'Proxy-Authenticate': 'Basic'})
('x', {'Trailer': 'X-A'})|('x', {'Proxy-Connection': 'close'})
Response('x', headers={'Connection': 'close'})|Response(iter(['x']), headers={'Upgrade': 'x'})
"""


def _words(table: str) -> list[str]:
    return [word for line in table.split("\n") for word in line.split("|") if word]


def returned(style: str) -> list[str]:
    """What handlers of `style` return, as expressions."""
    values, statuses, headers = map(_words, (_VALUES, _STATUSES, _HEADERS))
    few = [value for value in values if value in ("'text'", "b'\\xff'", "[1, 2]", "{1: 2}", "7")]
    found = [*values, *_words(_RESPONSES)]
    found += [f"({value}, {status})" for value, status in product(few[:2], statuses)]
    found += [f"('text', 201, {each})" for each in headers]
    found += [f"('text', {each})" for each in headers]
    if style != "flask":
        found += [f"{{'body': {value}}}" for value in values]
        octets = "{'Content-type': 'application/octet-stream'}"
        found += [f"{{'body': {value}, 'headers': {octets}}}" for value in values]
        found += [
            f"{{'body': {value}, 'statusCode': {status}}}"
            for value, status in product(few, statuses)
        ]
        found += [
            f"{{'body': {value}, 'headers': {each}}}" for value, each in product(few, headers)
        ]
        found += [
            "{'statusCode': 201}",
            "{'headers': {'X-A': '1'}}",
            "{'x': 1}",
            "{'body': 'x', 'headers': {'Connection': 'close'}}",
            "{'body': 'x', 'statusCode': 201, 'headers': {'Upgrade': 'x'}}",
            f"{{'headers': {octets}}}",
        ]
    return found


def handler(style: str) -> str:
    """The handler of `style` that returns what it is asked for."""
    if style == "flask":
        return HANDLER.format(parameters="req", text="req")
    return HANDLER.format(parameters="event, context", text="event.body.decode()")


#: Headers that differ from server to server, or from answer to answer.
_OF_THE_SERVER = {"Date", "Server", "Via", "Connection"}
#: Where an object lies, as ``repr`` shows it.
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
#: How a server's own answer names the server.
_SERVER = re.compile(r"\(generated by \w+\)")


def told(port: int, expression: str) -> list[Any]:
    """Status, headers and body of the answer of a server to `expression`, as JSON has them."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/", expression.encode())
        response = connection.getresponse()
        pairs = response.getheaders()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        error.add_note(f"the handler returned {expression}")
        raise
    finally:
        connection.close()
    text = _SERVER.sub("(server)", _ADDRESS.sub("0x0", body.decode("latin-1")))
    varies = "0x0" in text or "(server)" in text
    left_out = {*_OF_THE_SERVER, *(["Content-Length"] if varies else [])}
    headers = sorted(list(pair) for pair in pairs if pair[0] not in left_out)
    return [response.status, headers, text]


#: Runs index.py as a program, but on a socket that is there.
_SERVE = """
import runpy, socket, sys, waitress
waitress.serve = lambda app, **_: waitress.create_server(
    app, sockets=[socket.socket(fileno={listener})]
).run()
sys.path[0] = {folder!r}
sys.argv[:] = ["index.py"]
runpy.run_path("index.py", run_name="__main__")
"""


@contextmanager
def serving(
    template: Path, files: Mapping[str, str], settings: Mapping[str, str] | None = None
) -> Iterator[int]:
    """The port of the template's own index.py, which serves the function that has `files`."""
    listener = socket.create_server(("127.0.0.1", 0))
    with tempfile.TemporaryDirectory() as folder, listener:
        (Path(folder) / "index.py").write_bytes((template / "index.py").read_bytes())
        for name, text in files.items():
            file = Path(folder) / "function" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        known = {"PATH": os.environ["PATH"], "HOME": folder, "PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVE.format(folder=folder, listener=listener.fileno())],
            cwd=folder,
            env={**known, **(settings or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port: int = listener.getsockname()[1]
        listener.close()
        try:
            yield port
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def revision(clone: Path) -> dict[str, str]:
    """Which commit of the templates a clone has."""
    git = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    found = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    return {"template": "openfaas/python-flask-template", "revision": found}


def main() -> None:
    """Record the answers of the templates in the clone that the command line names."""
    clone = Path(sys.argv[1])
    answers = {}
    for style, name in STYLES.items():
        with serving(clone / "template" / name, {"handler.py": handler(style)}) as port:
            answers[style] = {each: told(port, each) for each in returned(style)}
    json.dump(revision(clone) | {"answers": answers}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
