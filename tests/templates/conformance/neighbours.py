"""Functions that change what their process shares, and functions that change nothing."""

from __future__ import annotations

_HANDLER = """
import asyncio, builtins, codecs, contextlib, copyreg, csv, decimal, faulthandler, functools, gc
import http.client, io, json, locale, logging, math, mimetypes, os, random, re, resource, socket
import sqlite3, ssl, string, sys, tempfile, threading, time, tracemalloc, types, unittest.mock
import urllib.request, uuid, warnings
import numpy as np

{at_import}

def handle(req):
    {code}
    return req
"""
#: What a function does in each run that another function of the process notices.
CHANGES = """
random.seed(42)
random.setstate(random.Random(1).getstate())
np.random.seed(42)
os.environ["REGION"] = "eu-west-1"
os.environ.setdefault("MODE", "set")
os.environ.pop("HOME", None)
os.environ.update(A="1")
os.putenv("LOW", "1")
os.chdir("/")
os.umask(0o77)
os.nice(1)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
logging.disable(logging.WARNING)
logging.getLogger().addHandler(logging.NullHandler())
logging.setLoggerClass(type("Own", (logging.Logger,), {}))
sys.path.insert(0, "/nowhere")
sys.path.append("/nowhere")
sys.modules["invented"] = types.ModuleType("invented")
sys.stdout = io.StringIO()
sys.stderr = sys.stdout
sys.excepthook = print
sys.setrecursionlimit(5000)
sys.setswitchinterval(0.01)
sys.argv.append("--more")
threading.excepthook = print
threading.stack_size(1 << 20)
threading.settrace(lambda *_: None)
locale.setlocale(locale.LC_ALL, "C.UTF-8")
os.environ["TZ"] = "Asia/Tokyo"; time.tzset()
warnings.simplefilter("error")
warnings.showwarning = print
decimal.DefaultContext.prec = 5
socket.setdefaulttimeout(7)
socket.getaddrinfo = functools.partial(socket.getaddrinfo)
ssl._create_default_https_context = ssl._create_unverified_context
urllib.request.install_opener(urllib.request.build_opener())
json.dumps = functools.partial(json.dumps)
json.JSONEncoder.default = lambda self, o: str(o)
builtins.print = functools.partial(print)
builtins.mine = 1
math.pi = 3
string.digits = "01"
tempfile.tempdir = tempfile.mkdtemp()
csv.field_size_limit(1 << 20)
mimetypes.add_type("text/x-own", ".own")
http.client.HTTPConnection.debuglevel = 1
gc.callbacks.append(lambda *_: None)
copyreg.pickle(complex, lambda c: (complex, (c.real, c.imag)))
codecs.register(lambda name: None)
sqlite3.register_adapter(uuid.UUID, str)
gc.disable()
gc.set_threshold(1)
np.random.set_state(np.random.RandomState(1).get_state())
np.float_like = float
with contextlib.redirect_stdout(io.StringIO()): print("captured"); time.sleep(0.01)
with contextlib.redirect_stderr(io.StringIO()): time.sleep(0.01)
with unittest.mock.patch("time.time", lambda: 0): time.sleep(0.01)
with unittest.mock.patch.dict(os.environ, {"PATCHED": "1"}): time.sleep(0.01)
with unittest.mock.patch.object(json, "loads", str): time.sleep(0.01)
with warnings.catch_warnings(record=True): time.sleep(0.01)
"""
#: What a function does that no other one notices, but for what is in the log.
HARMLESS = """
random.random()
random.Random(3).random()
np.random.default_rng(3).random()
np.random.random()
os.environ.get("HOME")
os.getcwd()
dict(os.environ).update(A="1")
logging.getLogger(__name__).warning("careful")
logging.getLogger("own").info("not shown")
print("printed")
print("printed", file=sys.stderr)
json.dumps({"a": [1, 2.5]})
decimal.getcontext().prec = 5
with decimal.localcontext() as context: context.prec = 9
re.compile(f"a{random.random()}").match("b")
tempfile.mkdtemp()
[threading.Thread(target=time.sleep, args=(0.001,)).start() for _ in range(3)]
asyncio.run(asyncio.sleep(0.001))
gc.collect()
socket.socketpair()[0].settimeout(3)
sqlite3.connect(":memory:").execute("select 1")
time.sleep(0.001)
import fractions; fractions.Fraction(1, 3)
from xml.dom import minidom; minidom.parseString("<a/>")
warnings.warn("careful")
uuid.uuid4()
locale.getlocale()
np.linalg.inv(np.eye(3))
logging.basicConfig(level=logging.DEBUG)
logging.getLogger().setLevel(logging.DEBUG)
logging.getLogger("urllib3").setLevel(logging.CRITICAL)
logging.getLogger("urllib3").disabled = True
logging.addLevelName(logging.INFO, "info")
logging.captureWarnings(True)
warnings.filterwarnings("ignore", message="x")
asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
tracemalloc.start()
faulthandler.enable()
"""
#: What a module does while it is imported that other functions of its process notice.
CHANGES_AT_IMPORT = """
os.environ["REGION"] = "eu-west-1"
os.environ["TZ"] = "Asia/Tokyo"; time.tzset()
os.chdir("/tmp")
os.umask(0o77)
logging.disable(logging.WARNING)
sys.setrecursionlimit(5000)
sys.path.insert(0, "/nowhere")
sys.stdout = io.StringIO()
socket.setdefaulttimeout(7)
locale.setlocale(locale.LC_ALL, "C.UTF-8")
warnings.simplefilter("error")
decimal.DefaultContext.prec = 5
json.dumps = functools.partial(json.dumps)
builtins.print = functools.partial(print)
gc.disable()
"""


def _lines(text: str) -> list[str]:
    return text.strip().split("\n")


def functions(prefix: str, text: str, *, at_import: bool = False) -> dict[str, tuple[str, str]]:
    """Function -> the line of `text` that it is made of, and its handler."""
    found = {}
    for number, line in enumerate(_lines(text)):
        code = {"at_import": line, "code": "pass"} if at_import else {"at_import": "", "code": line}
        found[f"{prefix}{number}"] = (line, _HANDLER.format(**code))
    return found


CHANGING = functions("c", CHANGES)
CHANGING_AT_IMPORT = functions("i", CHANGES_AT_IMPORT, at_import=True)
KEEPING = functions("h", HARMLESS)
