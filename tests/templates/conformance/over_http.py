"""Behaviours of the request that a handler gets, of its answer, and of how it fails."""

from __future__ import annotations

from behaviour import Behaviour, Family, Request, asked, one

_ASKS = """
import collections, dataclasses, io, json, os, sys, traceback
import flask
from flask import Response, abort, after_this_request, g, jsonify, make_response, redirect, request
from flask import current_app, send_file, stream_with_context

def pieces(*texts):
    for text in texts:
        yield text

def sorted_dict(pairs):
    return {key: value for key, value in sorted(pairs) if key in ("Accept", "X-Api-Key", "X-Two")}

def later(name, value):
    @after_this_request
    def add(response):
        response.headers[name] = value
        return response
    return "with a header"

def unless(error, make):
    try:
        return make()
    except error as raised:
        return f"{type(raised).__name__}"
"""
_FLASK = (
    _ASKS
    + """
def handle(req):
    asked = request.headers.get("X-Ask") or req
    return eval(asked)
"""
)
_HTTP = (
    _ASKS
    + """
def handle(event, context):
    return eval(event.headers.get("X-Ask") or event.body.decode())
"""
)


def _ask(
    asked: str, method: str = "POST", path: str = "/", body: str | bytes = "", **headers: str
) -> Behaviour:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return one(Request(body, method, path, {"X-Ask": asked, **names}))


_SEEN = "json.dumps([request.method, request.path, request.query_string.decode()])"
_FORM = {"Content_Type": "application/x-www-form-urlencoded"}
_MULTIPART = (
    '--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n'
    "Content-Type: text/plain\r\n\r\nthe file\r\n--b--\r\n"
)

REQUEST = Family(
    "flask",
    _FLASK,
    {
        "POST": _ask(_SEEN),
        "GET": _ask(_SEEN, "GET"),
        "GET with path and query": _ask(_SEEN, "GET", "/orders/7?full=1&full=2&empty="),
        "path that is quoted": _ask(_SEEN, "POST", "/gr%C3%BC%C3%9Fe/a%2Fb/c%20d?q=%C3%BC+x"),
        "PUT": _ask(_SEEN, "PUT"),
        "DELETE": _ask(_SEEN, "DELETE"),
        "HEAD": _ask(_SEEN, "HEAD"),
        "OPTIONS": _ask(_SEEN, "OPTIONS"),
        "query": _ask("request.args.to_dict(flat=False)", "GET", "/?a=1&a=2&b=%C3%BC"),
        "headers": _ask(
            "sorted_dict(request.headers.items())", Accept="text/csv", X_Api_Key="k", X_Two="1, 2"
        ),
        "absent header": _ask("str(request.headers.get('X-Absent'))"),
        "authorization": _ask("request.authorization.username", Authorization="Basic YTpi"),
        "bearer": _ask("request.headers['Authorization']", Authorization="Bearer t"),
        "cookies": _ask("request.cookies['a']", Cookie="a=1; b=2"),
        "user agent": _ask("request.user_agent.string", User_Agent="tests/1"),
        "accept": _ask("request.accept_mimetypes.best", Accept="text/csv, */*;q=0.1"),
        "host": _ask("request.host", Host="shop.example"),
        "url": _ask("request.url", "GET", "/a?b=1", Host="shop.example"),
        "base url": _ask(
            "request.base_url + ' ' + request.root_url", "GET", "/a", Host="shop.example"
        ),
        "scheme": _ask("request.scheme"),
        "remote address": _ask("str(request.remote_addr)"),
        "forwarded for": _ask("request.headers['X-Forwarded-For']", X_Forwarded_For="1.2.3.4"),
        "json": _ask("request.json['a']", body='{"a": "x"}', Content_Type="application/json"),
        "json with another type": _ask("request.json", body="{}", Content_Type="text/plain"),
        "json that is none": _ask("request.json", body="{", Content_Type="application/json"),
        "silent json": _ask("str(request.get_json(silent=True))", body="{"),
        "forced json": _ask("request.get_json(force=True)['a']", body='{"a": "x"}'),
        "form": _ask("dict(request.form)", body="a=1&b=2", **_FORM),
        "values": _ask("dict(request.values)", "POST", "/?c=3", body="a=1", **_FORM),
        "file": _ask(
            "request.files['f'].read()",
            body=_MULTIPART,
            Content_Type="multipart/form-data; boundary=b",
        ),
        "file name": _ask(
            "request.files['f'].filename",
            body=_MULTIPART,
            Content_Type="multipart/form-data; boundary=b",
        ),
        "content length": _ask("str(request.content_length)", body="12345"),
        "content type": _ask("request.content_type", body="x", Content_Type="text/x-own; a=b"),
        "no content type": _ask("str(request.content_type)"),
        "data": _ask("request.get_data()", body=b"\xff\x00"),
        "data twice": _ask("request.get_data() + request.data", body=b"ab"),
        "stream": _ask("request.stream.read()", body=b"ab"),
        "text that is no UTF-8": _ask("ascii(req)", body=b"a\xffb\xc3"),
        "text": _ask("ascii(req)", body="grüße\r\n\0"),
        "empty": _ask("ascii(req)"),
        "large": _ask("str(len(req))", body="x" * 3_000_000),
        "type of the text": _ask("type(req).__name__"),
        "endpoint": _ask("request.endpoint"),
        "view arguments": _ask("str(request.view_args)", "GET", "/a/b"),
        "blueprint": _ask("str(request.blueprint)"),
        "application": _ask("flask.current_app.name"),
        "debug": _ask("str(flask.current_app.debug)"),
        "url for": _ask("flask.url_for('main_route', path='a/b')"),
        "g": _ask("g.setdefault('x', 'set')"),
        "g of another request": _ask("str(g.get('x'))"),
        "request context": _ask("str(flask.has_request_context())"),
        "session": _ask("unless(RuntimeError, lambda: flask.session.setdefault('a', 1))"),
        "abort in the middle": _ask("unless(Exception, lambda: abort(404))"),
        "call id": _ask("str('X-Call-Id' in request.headers)"),
        "call id of the caller": _ask("request.headers['X-Call-Id']", X_Call_Id="abc-1"),
        "trace": _ask(
            "request.headers['traceparent'][:35]",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        "server": _ask("request.environ['SERVER_SOFTWARE']"),
        "websocket": _ask("'x'", Connection="Upgrade", Upgrade="websocket"),
        "other protocol": _ask("'x'", Connection="Upgrade", Upgrade="h2c"),
        "environ": _ask("request.environ['REQUEST_METHOD'] + request.environ['SERVER_PROTOCOL']"),
    },
    settings={"HOSTNAME": "pod-7"},
    headers=True,
)
RAW = Family(
    "flask",
    "def handle(req):\n    return type(req).__name__ + ' ' + req.hex()\n",
    {"bytes": one(Request(b"a\xff")), "empty": one(Request())},
    settings={"RAW_BODY": "true"},
)
EVENT = Family(
    "http",
    _HTTP,
    {
        "body": _ask("type(event.body).__name__ + event.body.hex()", body=b"a\xff"),
        "empty": _ask("repr(event.body)"),
        "method, path, query": _ask(
            "[event.method, event.path, event.query.to_dict(flat=False)]", "GET", "/a/b?c=1&c=2"
        ),
        "PUT": _ask("event.method", "PUT"),
        "PATCH": _ask("event.method", "PATCH"),
        "DELETE": _ask("event.method", "DELETE"),
        "HEAD": _ask("event.method", "HEAD"),
        "query": _ask("event.query.get('a', 'none') + event.query['b']", "GET", "/?b=2"),
        "absent query": _ask("str(event.query.get('a'))"),
        "headers": _ask("json.dumps(sorted_dict(event.headers.items()))", X_Api_Key="k"),
        "headers in any case": _ask("event.headers['x-API-key']", X_Api_Key="k"),
        "absent header": _ask("event.headers['X-Absent']"),
        "absent header with get": _ask("str(event.headers.get('X-Absent'))"),
        "host": _ask("event.headers['Host']", Host="shop.example"),
        "content type": _ask("event.headers['Content-Type']", body="x", Content_Type="a/b"),
        "content length": _ask("event.headers['Content-Length']", body="12345"),
        "json": _ask("json.loads(event.body)['a']", body='{"a": "x"}'),
        "names of headers": _ask(
            "sorted(k for k, _ in event.headers if k not in ('X-Ask', 'Accept-Encoding'))"
        ),
        "hostname": _ask("context.hostname"),
        "fields of the event": _ask("sorted(vars(event))"),
        "fields of the context": _ask("sorted(vars(context))"),
        "classes": _ask("[type(event).__name__, type(context).__name__]"),
        "attributes that are added": _ask("[setattr(event, 'user', 1), event.user]"),
        "flask beside it": _ask("request.path + request.method", "GET", "/a"),
        "signature of a webhook": _ask(
            "__import__('hmac').new(b'k', event.body, 'sha256').hexdigest()"
            " == event.headers['X-Signature']",
            body=b'{"a":1}',
            X_Signature="x",
        ),
    },
    settings={"HOSTNAME": "pod-7"},
    headers=True,
)
_RETURNED = """
    'text'
    b'\\xff\\x00'
    ''
    None
    [1, 2]
    {'a': 1}
    ('made', 201)
    ('made', 201, {'X-Kind': 'tuple', 'Location': '/orders/7'})
    ('made', {'X-Kind': 'tuple'})
    ('', 204)
    ('', 304)
    ('no such order', 404)
    ({'error': 'no such order'}, 404)
    ('try later', 503, {'Retry-After': '7'})
    ('broken', 500)
    Response('a,b\\n', mimetype='text/csv')
    Response('x', 202, {'X-A': '1'})
    Response('c', headers=[('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2')])
    Response(pieces('a', 'b'), mimetype='text/event-stream')
    Response(stream_with_context(pieces('a', request.method)))
    pieces('a', 'b', 'c')
    pieces('a', None, '', 'b')
    Response(pieces('a', None), mimetype='text/plain')
    jsonify(ok=True)
    make_response('x', 418)
    redirect('/there')
    redirect('http://example.test/there', 307)
    abort(404)
    abort(409, 'taken')
    abort(401)
    send_file(io.BytesIO(bytes(range(256))), mimetype='application/octet-stream')
    send_file(io.BytesIO(b'a'), download_name='a.txt', as_attachment=True)
    send_file('function/handler.py').status
    current_app.open_resource('function/handler.py').read(1)
    'x' * 70000
    'gr\\u00fc\\u00dfe \\U0001f600'
    '\\ud800'
    7
    {1}
    later('X-After', 'request')
"""
RETURNED_BY_FLASK = Family("flask", _FLASK, asked(_RETURNED), headers=True)
RETURNED_BY_HTTP = Family(
    "http",
    _HTTP,
    asked(
        _RETURNED
        + """
    {'statusCode': 200, 'body': 'fine'}
    {'statusCode': 201, 'body': 'made', 'headers': {'Location': '/orders/7', 'X-Rate': '9'}}
    {'statusCode': 302, 'body': '', 'headers': {'Location': 'http://example.test/there'}}
    {'statusCode': 204}
    {'statusCode': 404, 'body': {'error': 'x'}, 'headers': {'Content-Type': 'application/json'}}
    {'statusCode': 500, 'body': 'broken'}
    {'statusCode': 200, 'body': 'c', 'headers': [('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2')]}
    {'statusCode': 200, 'body': {'a': 1}}
    {'statusCode': 200, 'body': [1]}
    {'statusCode': 200, 'body': b'x'}
    {'body': None}
    {'statusCode': '200', 'body': 'x'}
    {'headers': {'Content-Type': 'text/csv'}, 'body': 'a,b'}
    {'statusCode': 200, 'isBase64Encoded': True, 'body': 'eA=='}
    collections.OrderedDict(statusCode=201, body='x')
    """
    ),
    headers=True,
)
#: How a handler fails.
FAILS = Family(
    "flask",
    """
import ctypes, json, os, signal, sys, threading

class OrderError(Exception):
    pass

class Quiet(BaseException):
    pass

class Broken(Exception):
    def __str__(self):
        raise ValueError

def throw(error):
    raise error

def noted():
    error = OrderError("noted")
    error.add_note("see the manual")
    raise error

def caused():
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise OrderError("outer") from error

def recursion():
    return recursion()

def generator():
    yield "first"
    raise OrderError("after the first piece")

async def coroutine():
    return "never awaited"

def in_thread():
    thread = threading.Thread(target=throw, args=(OrderError("in a thread"),))
    thread.start()
    thread.join()
    return "answered"

def handle(req):
    return eval(req)
""",
    asked("""
        throw(OrderError('no stock'))
        throw(OrderError)
        throw(Quiet('x'))
        throw(Broken())
        throw(ExceptionGroup('several', [OrderError('a'), ValueError('b')]))
        throw(BaseExceptionGroup('several', [KeyboardInterrupt()]))
        throw(KeyboardInterrupt())
        throw(GeneratorExit())
        throw(StopIteration('x'))
        throw(MemoryError())
        throw(SystemError('x'))
        throw(TimeoutError('x'))
        throw(BrokenPipeError('x'))
        throw(ConnectionResetError('x'))
        throw(AssertionError)
        throw(SystemExit)
        noted()
        caused()
        recursion()
        'x' * (1 << 62)
        1 / 0
        [][1]
        None.absent
        undefined
        json.loads('{')
        open('/absent')
        import_absent if False else __import__('absent')
        int('x')
        'x' + 1
        '\\ud800'.encode()
        b'\\xff'.decode()
        compile('1 +', 'made.py', 'exec')
        exec('raise OrderError(1)')
        sys.exit()
        sys.exit(0)
        sys.exit(3)
        sys.exit('text')
        exit()
        coroutine()
        generator()
        in_thread()
        'after all of that'
    """),
)
