"""What differs from a function alone, and stays so.

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


#: What a handler answers that comes as a whole from a wrap that the gateway calls.
PIECES = [
    "Response(pieces('a', 'b'), mimetype='text/event-stream')",
    "Response(stream_with_context(pieces('a', request.method)))",
    "pieces('a', 'b', 'c')",
    "pieces('a', None, '', 'b')",
    "Response(pieces('a', None), mimetype='text/plain')",
]
#: Row of the table in templates/README.md -> what differs for its reason.
DOCUMENTED: dict[str, Places] = {
    "state of processes": {
        "seeded at import | fork, pool": [
            "random.random()",
            "np.random.random()",
            "RNG.random()",
            "BITS.random()",
        ],
        "kept | fork": [
            "replaced()",
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
        "import: sqlite file | fork": [
            "counted",
        ],
    },
    "process that imports": {
        "import: process id | fork, pool": [
            "own",
        ],
        "import: context | fork, pool": [
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
        ],
        "fails | two wraps": [
            "generator()",
        ],
    },
    "answers in pieces": {
        "returned by flask | two wraps": PIECES,
        "returned by http | two wraps": PIECES,
    },
    "threads and children": {
        "process | fork, pool": [
            "threading.current_thread() is threading.main_thread()",
            "threading.current_thread().daemon",
            "said(lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL))",
            "said(lambda: signal.set_wakeup_fd(-1))",
            "said(asyncio.get_event_loop)[:32]",
            "in_thread(threading.current_thread).daemon",
        ],
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
            "faulthandler.is_enabled()",
        ],
    },
    "Flask's application": {
        "request | plain, thread, fork, pool, two wraps": [
            "application",
        ],
    },
}
