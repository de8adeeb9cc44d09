"""What differs from a function alone: what stays so, and what has to be mended.

The keys of a table are a family and the places in which its behaviours differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Places = Mapping[str, Sequence[str]]


def listed(places: Places) -> Iterator[tuple[str, str, str]]:
    """Family, behaviour and place of each difference."""
    for key, behaviours in places.items():
        family, _, where = key.partition(" | ")
        for place in where.split(", "):
            for behaviour in behaviours:
                yield family, behaviour, place


#: Row of the table in templates/README.md -> what differs for its reason.
DOCUMENTED: dict[str, Places] = {
    "state of a forked process": {
        "names | fork": [
            "sorted(name for name in dir(function) if not name.startswith('_'))",
        ],
        "seeded at import | fork": [
            "random.random()",
            "np.random.random()",
            "RNG.random()",
            "BITS.random()",
        ],
        "kept | fork": [
            "counted()",
            "next(NUMBERS)",
            "token(1) == CACHE.setdefault('token', token(1)) and token.cache_info().hits > 1",
            "environment('x')",
            "configured('second')",
            "default()",
            "attribute()",
            "module()",
            "late()",
        ],
    },
    "process that imports": {
        "import: process id | fork, pool": [
            "own",
        ],
        "import: settings | fork, pool": [
            "decimal.getcontext().prec",
            "str(decimal.Decimal(1) / 3)",
            "np.geterr()['divide']",
            "np.get_printoptions()['precision']",
            "str(np.float64(1) / 3 * np.ones(1))",
        ],
        "import: context | fork, pool": [
            "VAR.get()",
            "hasattr(LOCAL, 'x')",
        ],
    },
    "failed requests": {
        "fails | thread, fork, pool, two wraps": [
            "throw(OrderError('no stock'))",
            "throw(OrderError)",
            "throw(Quiet('x'))",
            "throw(Broken())",
            "throw(ExceptionGroup('several', [OrderError('a'), ValueError('b')]))",
            "throw(BaseExceptionGroup('several', [KeyboardInterrupt()]))",
            "throw(KeyboardInterrupt())",
            "throw(GeneratorExit())",
            "throw(StopIteration('x'))",
            "throw(MemoryError())",
            "throw(SystemError('x'))",
            "throw(TimeoutError('x'))",
            "throw(BrokenPipeError('x'))",
            "throw(ConnectionResetError('x'))",
            "throw(AssertionError)",
            "throw(SystemExit)",
            "noted()",
            "caused()",
            "recursion()",
            "'x' * (1 << 62)",
            "1 / 0",
            "[][1]",
            "None.absent",
            "undefined",
            "json.loads('{')",
            "open('/absent')",
            "import_absent if False else __import__('absent')",
            "int('x')",
            "'x' + 1",
            "'\\ud800'.encode()",
            "b'\\xff'.decode()",
            "compile('1 +', 'made.py', 'exec')",
            "exec('raise OrderError(1)')",
            "sys.exit()",
            "sys.exit(0)",
            "sys.exit(3)",
            "sys.exit('text')",
            "exit()",
            "coroutine()",
            "generator()",
        ],
    },
    "thread of the handler": {
        "process | fork, pool": [
            "threading.current_thread() is threading.main_thread()",
            "threading.current_thread().daemon",
            "said(lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL))",
            "said(lambda: signal.set_wakeup_fd(-1))",
            "said(asyncio.get_event_loop)[:32]",
            "in_thread(threading.current_thread).daemon",
        ],
    },
    "children of the process": {
        "process | thread, two wraps": [
            "said(lambda: os.waitpid(-1, os.WNOHANG))",
        ],
    },
    "modules and folders": {
        "names | thread, fork, pool, two wraps": [
            "__spec__.name",
            "sys.modules['function.model'] is model",
            "importlib.reload(sys.modules['function.late' if imported_late() else '']).NAME",
            "importlib.util.find_spec('function.model').name",
            "importlib.util.find_spec('.model', 'function').name",
            "inspect.getmodule(model.Scaler) is model",
            "doctest.testmod(model).attempted",
        ],
        "process | thread, fork, pool, two wraps": [
            "os.environ.get('HOME') == os.getcwd()",
            "open is io.open",
            "open.__name__",
        ],
        "files | thread, fork, pool, two wraps": [
            "os.getcwd() in (sys.path[0], os.path.dirname(sys.modules['__main__'].__file__))",
            "os.path.samefile(os.getcwd(), os.path.dirname(os.path.abspath(sys.modules['__main__'].__file__)))",  # noqa: E501
        ],
    },
    "standard output": {
        "process | thread, fork, pool, two wraps": [
            "gc.get_freeze_count()",
            "sys.stdout.fileno()",
            "sys.stderr.fileno()",
            "sys.stdout.errors",
            "faulthandler.is_enabled()",
        ],
    },
    "Flask's application": {
        "request | plain, thread, fork, pool, two wraps": [
            "endpoint",
            "application",
            "url for",
        ],
    },
}
#: Why it differs -> what differs.
UNMENDED: dict[str, Places] = {
    "forked processes begin with equal generators of random numbers": {
        "varies | fork": [
            "np.random.random()",
            "np.random.random_sample()",
            "np.random.randint(1 << 60)",
            "np.random.randint(1 << 60) at once",
            "norm.rvs()",
            "norm.rvs() at once",
        ],
        "varies | fork, pool": [
            "np.random.random() at once",
            "np.random.random_sample() at once",
        ],
        "random objects | fork": [
            "OWN.random()",
            "RNG.random()",
            "RNG.random() at once",
            "STATE.rand()",
            "CLIENT.jitter.random()",
            "CLIENT.jitter.random() at once",
            "DRAW()",
            "DRAW() at once",
        ],
        "random objects | fork, pool": [
            "OWN.random() at once",
            "STATE.rand() at once",
        ],
        "seeded at import | pool": [
            "random.random()",
        ],
    },
    "the caller's request does not reach the first task": {
        "request | thread, fork, pool, two wraps": [
            "POST",
            "GET",
            "GET with path and query",
            "path that is quoted",
            "PUT",
            "DELETE",
            "HEAD",
            "OPTIONS",
            "query",
            "headers",
            "absent header",
            "authorization",
            "bearer",
            "cookies",
            "user agent",
            "accept",
            "host",
            "url",
            "base url",
            "scheme",
            "remote address",
            "json",
            "json with another type",
            "json that is none",
            "silent json",
            "forced json",
            "form",
            "values",
            "file",
            "file name",
            "content length",
            "content type",
            "no content type",
            "data",
            "data twice",
            "stream",
            "text that is no UTF-8",
            "text",
            "empty",
            "large",
            "type of the text",
            "view arguments",
            "blueprint",
            "debug",
            "g",
            "g of another request",
            "request context",
            "session",
            "abort in the middle",
            "call id",
            "call id of the caller",
            "trace",
            "environ",
        ],
        "event | thread, fork, pool, two wraps": [
            "body",
            "empty",
            "method, path, query",
            "PUT",
            "PATCH",
            "DELETE",
            "HEAD",
            "query",
            "absent query",
            "headers",
            "headers in any case",
            "absent header with get",
            "host",
            "content type",
            "content length",
            "json",
            "names of headers",
            "hostname",
            "fields of the event",
            "fields of the context",
            "classes",
            "attributes that are added",
            "flask beside it",
            "signature of a webhook",
        ],
    },
    "status, headers and bytes of the last task's answer do not reach the caller": {
        "returned by flask | thread, fork, pool, two wraps": [
            "'text'",
            "b'\\xff\\x00'",
            "''",
            "('made', 201)",
            "('made', 201, {'X-Kind': 'tuple', 'Location': '/orders/7'})",
            "('made', {'X-Kind': 'tuple'})",
            "('', 204)",
            "('', 304)",
            "('no such order', 404)",
            "({'error': 'no such order'}, 404)",
            "('try later', 503, {'Retry-After': '7'})",
            "Response('x', 202, {'X-A': '1'})",
            "Response('c', headers=[('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2')])",
            "Response(pieces('a', 'b'), mimetype='text/event-stream')",
            "Response(stream_with_context(pieces('a', request.method)))",
            "pieces('a', 'b', 'c')",
            "make_response('x', 418)",
            "redirect('/there')",
            "redirect('http://example.test/there', 307)",
            "abort(404)",
            "abort(409, 'taken')",
            "abort(401)",
            "send_file(io.BytesIO(bytes(range(256))), mimetype='application/octet-stream')",
            "send_file(io.BytesIO(b'a'), download_name='a.txt', as_attachment=True)",
            "'x' * 1000000",
            "'gr\\u00fc\\u00dfe \\U0001f600'",
            "later('X-After', 'request')",
        ],
        "returned by http | thread, fork, pool, two wraps": [
            "'text'",
            "b'\\xff\\x00'",
            "''",
            "None",
            "{'a': 1}",
            "('made', 201)",
            "('made', 201, {'X-Kind': 'tuple', 'Location': '/orders/7'})",
            "('made', {'X-Kind': 'tuple'})",
            "('', 204)",
            "('', 304)",
            "('no such order', 404)",
            "({'error': 'no such order'}, 404)",
            "('try later', 503, {'Retry-After': '7'})",
            "Response('x', 202, {'X-A': '1'})",
            "Response('c', headers=[('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2')])",
            "Response(pieces('a', 'b'), mimetype='text/event-stream')",
            "Response(stream_with_context(pieces('a', request.method)))",
            "pieces('a', 'b', 'c')",
            "make_response('x', 418)",
            "redirect('/there')",
            "redirect('http://example.test/there', 307)",
            "abort(404)",
            "abort(409, 'taken')",
            "abort(401)",
            "send_file(io.BytesIO(bytes(range(256))), mimetype='application/octet-stream')",
            "send_file(io.BytesIO(b'a'), download_name='a.txt', as_attachment=True)",
            "'x' * 1000000",
            "'gr\\u00fc\\u00dfe \\U0001f600'",
            "later('X-After', 'request')",
            "{'statusCode': 200, 'body': 'fine'}",
            "{'statusCode': 201, 'body': 'made', 'headers': {'Location': '/orders/7', 'X-Rate': '9'}}",  # noqa: E501
            "{'statusCode': 302, 'body': '', 'headers': {'Location': 'http://example.test/there'}}",
            "{'statusCode': 204}",
            "{'statusCode': 404, 'body': {'error': 'x'}, 'headers': {'Content-Type': 'application/json'}}",  # noqa: E501
            "{'statusCode': 200, 'body': 'c', 'headers': [('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2')]}",  # noqa: E501
            "{'statusCode': 200, 'body': [1]}",
            "{'statusCode': 200, 'body': b'x'}",
            "{'body': None}",
            "{'statusCode': '200', 'body': 'x'}",
            "{'statusCode': 200, 'isBase64Encoded': True, 'body': 'eA=='}",
        ],
    },
    "processes share what a module opened when it was imported": {
        "import: session | fork, pool": [
            "at_once",
        ],
        "import: urllib3 | fork, pool": [
            "at_once",
        ],
        "import: connection | fork, pool": [
            "at_once",
        ],
        "import: idle connection | fork, pool": [
            "at_once",
        ],
        "import: socket | fork, pool": [
            "at_once",
        ],
        "import: coprocess | fork, pool": [
            "at_once",
            "alive",
        ],
        "import: file offset | fork, pool": [
            "at_once",
        ],
        "import: descriptor | fork, pool": [
            "at_once",
        ],
        "import: socket pair | fork, pool": [
            "at_once",
        ],
        "import: epoll | fork, pool": [
            "at_once",
        ],
        "import: shared memory | fork, pool": [
            "at_once",
        ],
        "import: file lock | fork, pool": [
            "at_once",
        ],
    },
    "threads that were started at import do not exist in forked processes": {
        "import: asyncio thread | fork, pool": [
            "at_once",
        ],
        "import: executor | fork, pool": [
            "in_turn",
            "at_once",
        ],
        "import: process executor | fork": [
            "in_turn",
        ],
        "import: worker thread | fork, pool": [
            "at_once",
        ],
        "import: refreshing thread | fork, pool": [
            "in_turn",
        ],
        "import: lock held by a thread | fork, pool": [
            "in_turn",
        ],
        "import: timer | fork, pool": [
            "in_turn",
        ],
        "import: queue listener | fork, pool": [
            "in_turn",
        ],
        "import: manager | fork, pool": [
            "at_once",
        ],
    },
}

#: Line of `neighbours.py` -> why its change is not found.
UNMENDED_NEIGHBOURS: dict[str, str] = {}
