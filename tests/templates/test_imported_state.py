"""What a module opened or seeded when it was imported is never shared by two processes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serving import Answering, served

#: Longest wait for what takes a moment, in seconds; only what is broken reaches it.
BOUND_S = 180.0

#: Each generator draws one number for each request.
DRAWS = """
    import ctypes, json, random, sqlite3
    import numpy as np

    class Holder:
        def __init__(self):
            self.random = random.Random(7)

    class Odd(random.Random):
        def seed(self, *, by):
            super().seed(by)

        def __init__(self):
            self.seed(by=3)

    OWN, HOLDER, ODD = random.Random(), Holder(), Odd()
    random.seed(5)
    np.random.seed(5)
    np.random.standard_normal()
    STATE = np.random.RandomState(4)
    OTHER = np.random.RandomState(np.random.PCG64(4))
    OTHER.standard_normal()
    SEEDS = np.random.SeedSequence(6)
    NEW = [np.random.Generator(kind(3)) for kind in (
        np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)]
    DATABASE = sqlite3.connect(":memory:", check_same_thread=False)
    DATABASE.execute("select random()")
    LIBC = ctypes.CDLL(None)
    LIBC.drand48.restype = ctypes.c_double

    def handle(req):
        drawn = {
            "random": random.random(), "own": OWN.random(), "held": HOLDER.random.random(),
            "odd": ODD.random(), "gauss": np.random.standard_normal(), "numpy": np.random.random(),
            "state": STATE.random_sample(), "other": OTHER.standard_normal(),
            "child": int(SEEDS.spawn(1)[0].generate_state(1)[0]),
            "rand": LIBC.rand(), "drand48": LIBC.drand48(),
            "sqlite": DATABASE.execute("select random()").fetchone()[0],
            "spawned": float(NEW[1].spawn(1)[0].random()),
        }
        return json.dumps(drawn | {type(one.bit_generator).__name__: one.random() for one in NEW})
"""


@pytest.mark.parametrize(
    ("processes", "mechanism"), [([[], [0], [1]], "fork"), ([[0], [1]], "pool")]
)
def test_no_two_draws_are_the_same(processes, mechanism, start, wrap_image):
    tasks, entry = {0: "draw", 1: "draw"}, {"output": [0, 1]}
    image = wrap_image({"draw": DRAWS}, processes, tasks=tasks, mechanism=mechanism, entry=entry)
    server = start(image, pool_concurrency="1")
    drawn = [each for _ in range(3) for each in server.request().json]
    same = {name for name in drawn[0] if len({each[name] for each in drawn}) < len(drawn)}
    assert not same


class Echo(Answering):
    """Keeps connections, and answers the last part of the path."""

    def do_GET(self) -> None:
        self.answer(200, self.path.rpartition("/")[2].encode())


CONNECTED = """
    import sys
    FORKED = "requests" in sys.modules
    import json, os, requests

    BASE = f"http://127.0.0.1:{os.environ['PORT']}"
    SESSION = requests.Session()
    SESSION.get(BASE + "/hello")

    def handle(req):
        wanted = f"{os.getpid()}-{os.urandom(8).hex()}"
        return json.dumps([FORKED, wanted, SESSION.get(f"{BASE}/{wanted}", timeout=30).text])
"""


@pytest.mark.parametrize(
    ("processes", "mechanism"), [([[], [0], [1], [2]], "fork"), ([[0], [1], [2]], "pool")]
)
def test_no_process_gets_the_answer_to_anothers_request(
    processes: list[list[int]], mechanism: str, start: Any, wrap_image: Any, in_background: Any
) -> None:
    image = wrap_image(
        {"fetch": CONNECTED},
        processes,
        tasks=dict.fromkeys(range(3), "fetch"),
        mechanism=mechanism,
        entry={"output": [0, 1, 2]},
    )
    with served(Echo) as url:
        server = start(image, PORT=url.rpartition(":")[2])
        answers = [in_background(server.request) for _ in range(4)]
        found = [each for answer in answers for each in answer.result(BOUND_S).json]
    assert all(wanted == answered for _, wanted, answered in found)
    assert all(forked for forked, *_ in found)  # libraries are imported once for all processes
    said = f"function fetch opens socket {url.removeprefix('http://')} when"
    assert server.log.read_text().count(said) == 1


#: Functions that open something when they are imported, and answer whether it works as alone.
OPENS = {
    "reads": """
        FILE = open(__file__)
        FILE.readline()
        def handle(req):
            return str(FILE.readline() == "FILE = open(__file__)\\n")
    """,
    "waits": """
        import threading
        LOCK, HELD, WANTED = threading.Lock(), threading.Event(), threading.Event()
        def hold():
            with LOCK:
                HELD.set()
                WANTED.wait()
        threading.Thread(target=hold, daemon=True, name="holder").start()
        HELD.wait()
        def handle(req):
            WANTED.set()
            with LOCK:
                return "True"
    """,
    "loops": """
        import asyncio, os
        LOOP = asyncio.new_event_loop()
        LOOP.run_until_complete(LOOP.run_in_executor(None, int))
        def handle(req):
            found = LOOP.run_until_complete(LOOP.run_in_executor(None, os.getpid))
            return str(found == os.getpid())
    """,
    "queues": """
        import multiprocessing, os
        QUEUE = multiprocessing.Queue()
        QUEUE.put(0)
        QUEUE.get()
        def handle(req):
            QUEUE.put(os.getpid())
            return str(QUEUE.get() == os.getpid())
    """,
    "maps": """
        import mmap, tempfile
        FILE = tempfile.TemporaryFile()
        FILE.write(b"0")
        FILE.flush()
        MEMORY = mmap.mmap(FILE.fileno(), 1)
        def handle(req):
            found, MEMORY[:] = MEMORY[:], b"1"
            return str(found == b"0")
    """,
    "handles": """
        import signal
        signal.signal(signal.SIGUSR2, lambda *_: CAUGHT.append(1))
        CAUGHT, ENDS = [], open("/dev/null")
        LOG = open("log", "a")
        LOG.write("imported\\n")
        def handle(req):
            signal.raise_signal(signal.SIGUSR2)
            LOG.write("handled\\n")
            return str(len(CAUGHT) == 1)
    """,
    "ticks": """
        import signal, threading
        TICKED = threading.Event()
        signal.signal(signal.SIGALRM, lambda *_: TICKED.set())
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        def handle(req):
            TICKED.clear()
            return str(TICKED.wait(20))
    """,
    "moves": """
        import os, socket, tempfile
        OPEN = socket.socketpair()
        FOLDER = os.path.realpath(tempfile.mkdtemp())
        os.chdir(FOLDER)
        def handle(req):
            return str(os.getcwd() == FOLDER)
    """,
}


def test_what_modules_open_works_as_alone(start: Any, wrap_image: Any, eventually: Any) -> None:
    tasks = dict(enumerate([*OPENS, *OPENS]))
    processes = [[], *([task] for task in tasks)]
    entry = {"output": list(tasks)}
    image = wrap_image(OPENS, processes, tasks=tasks, timeout_s=BOUND_S, entry=entry)
    server = start(image)
    found = server.request().json
    assert {*zip(tasks.values(), found, strict=True)} == {(name, "True") for name in OPENS}
    said = server.log.read_text()
    late = [name for name in OPENS if f"function {name} opens" in said]
    assert late == [name for name in OPENS if name != "handles"]
    assert "opens thread holder when" in said
    log = image / "function" / "functions" / "handles" / "log"
    # Its processes end, which writes out what they hold back.
    assert eventually(lambda: log.read_text() == "imported\n" + "handled\n" * 2)


PRECISE = """
    import decimal
    import numpy as np

    decimal.getcontext().prec = 3

    def handle(req):
        found = f"{decimal.getcontext().prec} {np.geterr()['divide']}"
        decimal.getcontext().prec = 4
        np.seterr(divide="raise")
        return found
"""


@pytest.mark.parametrize(("processes", "mechanism"), [([[0, 1]], "fork"), ([[], [0], [1]], "pool")])
def test_each_task_has_the_defaults_of_context_variables(processes, mechanism, start, wrap_image):
    """Alone, a thread of the server runs the handler, and another one has imported it."""
    handlers, entry = {"one": PRECISE, "other": PRECISE}, {"output": [0, 1]}
    server = start(wrap_image(handlers, processes, mechanism=mechanism, entry=entry))
    assert [server.request().json for _ in range(3)] == [["28 warn"] * 2] * 3


def test_a_function_that_asks_for_bytes_gets_them_alone(start: Any, wrap_image: Any) -> None:
    handler = "def handle(req):\n    return type(req).__name__\n"
    handlers = {"raw": f"import os\nos.environ['RAW_BODY'] = '1'\n{handler}", "text": handler}
    server = start(wrap_image(handlers, [[0, 1]], entry={"output": [0, 1]}))
    assert [server.request().json for _ in range(2)] == [["bytes", "str"]] * 2


def test_a_call_that_asks_for_bytes_gets_them_in_the_next_one_as_in_the_template(start, wrap_image):
    handler = """
        import os
        def handle(req):
            os.environ["RAW_BODY"] = "true"
            return type(req).__name__
    """
    server = start(wrap_image({"raw": handler}, entry={"output": 0}))
    assert [server.request().text for _ in range(2)] == ["str", "bytes"]


def test_what_a_function_leaves_in_the_output_of_python_itself_is_written_once(
    start, wrap_image, wait_until
):
    source = """
        import gc, sys

        COLLECTS = gc.isenabled()
        sys.__stdout__.write("imported ")

        def handle(req):
            sys.__stdout__.write("ran ")
            return f"{COLLECTS} {gc.isenabled()}"
    """
    server = start(wrap_image({"one": source}, [[], [0]], entry={"output": 0}), PYTHONUNBUFFERED="")
    assert [server.request().text for _ in range(3)] == ["True True"] * 3
    # A forked process writes it after its answer.
    wait_until(lambda: server.log.read_text().count("ran") == 3)
    server.terminate()
    assert sorted(server.log.read_text().split()) == ["imported", "ran", "ran", "ran"]
