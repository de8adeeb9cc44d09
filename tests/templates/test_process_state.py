"""What a function changes of what its process shares is found, whatever it calls for that."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from wrap.functions.setting_calls import CALLS

from tests.templates.changes import changes_of

#: The body of a handler -> what it is found to change; where there is "! ", alone in its function.
IN_RUNS = r"""
os.environ['MODE'] = 'x' -> os.environ['MODE']
os.environ.update(A='1', B='2') -> os.environ['A'], os.environ['B']
os.environ['TOKEN'] = req; os.environ.pop('TOKEN') -> os.environ['TOKEN']
! from unittest import mock\nwith mock.patch.dict(os.environ, {'A': '1'}): pass -> os.environ
os.putenv('LANG', 'xx') -> os.environ['LANG']
t = threading.Thread(target=os.environ.__setitem__, args=('A', '1')); t.start(); t.join() -> \
os.environ['A']
add_type('text/x-own', '.own') -> mimetypes.add_type
import mimetypes\nmimetypes.init(files=[]) -> mimetypes.init
import zoneinfo\nzoneinfo.reset_tzpath(to=['/']) -> zoneinfo.reset_tzpath
decimal.DefaultContext.traps[decimal.Inexact] = True -> decimal.DefaultContext.traps
here = os.getcwd()\nos.chdir('/')\nos.chdir(here) -> os.chdir
os.umask(os.umask(0o27)) -> os.umask
os.dup2(os.open('/dev/null', os.O_WRONLY), 1) -> os.dup2
sys.path.insert(0, '/nowhere') -> sys.path
sys.argv[:] = ['x'] -> sys.argv
with contextlib.redirect_stdout(io.StringIO()): print('x') -> sys.stdout
sys.stdin = io.StringIO('x') -> sys.stdin
sys.stdout.write = lambda text: len(text) -> sys.stdout
sys.excepthook = lambda *_: None -> sys.excepthook
threading.excepthook = print -> threading.excepthook
sys.displayhook = print -> sys.displayhook
sys.set_int_max_str_digits(sys.get_int_max_str_digits()) -> sys.set_int_max_str_digits
logging.shutdown() -> logging.shutdown
import wave\ndel sys.modules['wave']\nimport wave -> sys.modules
import resource\nresource.prlimit(0, 4, resource.getrlimit(4)) -> resource.prlimit
import faulthandler, signal\nfaulthandler.register(signal.SIGUSR2) -> faulthandler.register
old = sys.getrecursionlimit()\nsys.setrecursionlimit(5000)\nsys.setrecursionlimit(old) -> \
sys.setrecursionlimit
sys.path_hooks.append(print) -> sys.path_hooks
sys.setdlopenflags(258) -> sys.setdlopenflags
sys.set_asyncgen_hooks(firstiter=print) -> sys.set_asyncgen_hooks
gc.disable() -> gc.disable
locale.setlocale(locale.LC_ALL, 'C.UTF-8') -> locale.setlocale
old = setlocale(locale.LC_NUMERIC)\nsetlocale(locale.LC_NUMERIC, \
'C.UTF-8')\nsetlocale(locale.LC_NUMERIC, old) -> locale.setlocale
os.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset() -> os.environ['TZ'], time.tzset
logging.disable(logging.WARNING) -> logging.disable
logging.getLogger().setLevel(logging.ERROR) -> logging.root
kept = logging.StreamHandler(io.StringIO())\nlogging.getLogger().addHandler(kept)\n\
logging.getLogger().removeHandler(kept) -> logging.root
kept, of = logging.FileHandler('/dev/null'), \
logging.getLogger('urllib3')\nof.addHandler(kept)\nof.removeHandler(kept) -> \
logging.getLogger('urllib3')
import subprocess\nsubprocess.Popen(['sleep', '2']) -> programs that run on
import numpy as np\nnp.random.mtrand._rand.seed(1) -> numpy.random.seed
logging.getLogger().addFilter(lambda record: False) -> logging.root
os.system('sleep 2 &') -> programs that run on
threading.Thread(target=threading.Event().wait, daemon=True).start() -> daemon threads that run on
import ctypes\nctypes.CDLL(None).setenv(b'MODE', b'x', 1) -> ctypes.setenv
import sqlite3\nsqlite3.connect('file::memory:?cache=shared', uri=True).close() -> sqlite3.connect
from PIL import Image\nImage.register_open(f'OWN{len(Image.ID)}', print) -> PIL.Image.ID, \
PIL.Image.OPEN
import jsonschema\njsonschema.FormatChecker.cls_checks('even')(lambda value: True) -> \
jsonschema._format.FormatChecker.checkers
logging.addLevelName(logging.INFO, 'info') -> logging.addLevelName
import multiprocessing\nmultiprocessing.set_executable('/bin/false') -> \
multiprocessing.set_executable
from PIL import Image\nImage.register_extension('PNG', f'.{time.monotonic_ns()}') -> \
PIL.Image.EXTENSION
import networkx\nnetworkx.config.cache_converted_graphs ^= True -> \
networkx.config.cache_converted_graphs
import scipy.special\nscipy.special.seterr(**scipy.special.geterr()) -> scipy.special.seterr
import matplotlib\nmatplotlib.rcParams['font.size'] = 20 + time.monotonic() -> matplotlib.rcParams
import matplotlib\nwith matplotlib.rc_context({'font.size': 20}): pass -> matplotlib.rc_context
import importlib, string\nimportlib.reload(string) -> importlib.reload
import attr\nattr.validators.set_disabled(True) -> attr.validators.set_disabled
import matplotlib\nfrom matplotlib.colors import ListedColormap\nown = ListedColormap(['red'], \
name=f'own{time.monotonic_ns()}')\nmatplotlib.colormaps.register(own) -> matplotlib.colormaps, \
matplotlib.colormaps._cmaps
from unittest import mock\nwith mock.patch('requests.adapters.HTTPAdapter.send'): pass -> \
requests.adapters.HTTPAdapter.send
with warnings.catch_warnings():\n    warnings.simplefilter('error') -> warnings.filterwarnings
with warnings.catch_warnings(record=True): pass -> warnings.catch_warnings
warnings.showwarning = lambda *_: None -> warnings.showwarning
socket.setdefaulttimeout(2) -> socket.setdefaulttimeout
socket.getaddrinfo = print -> socket.getaddrinfo
! from unittest import mock\nwith mock.patch('time.time', return_value=1): pass -> time.time
json.JSONEncoder.default = lambda self, it: str(it) -> json.encoder.JSONEncoder.default
json.JSONEncoder.item_separator = ',' -> json.encoder.JSONEncoder.item_separator
import requests, functools\nSession = requests.Session\nSession.request = \
functools.partialmethod(Session.request, timeout=5) -> requests.sessions.Session.request
import configparser\nconfigparser.ConfigParser.BOOLEAN_STATES['si'] = True -> \
configparser.RawConfigParser.BOOLEAN_STATES
import mimetypes\nmimetypes.types_map.update({'.own': 'a/b'}) -> mimetypes.types_map
from urllib.parse import uses_netloc\nuses_netloc.append('own') -> urllib.parse.uses_netloc
from decimal import BasicContext\nBasicContext.prec = 5 -> decimal.BasicContext.prec
from collections.abc import Sequence\nSequence.register(numpy.ndarray) -> collections.abc.Sequence
! import builtins\nbuiltins.print = len -> builtins.print
random.seed(42) -> random.seed
seed(42) -> random.seed
state = random.getstate()\nrandom.seed(1)\nrandom.setstate(state) -> random.seed, random.setstate
numpy_seed(42)\nnumpy.random.rand() -> numpy.random.seed
csv.field_size_limit(1 << 30) -> csv.field_size_limit
import gettext\ngettext.textdomain('own') -> gettext.textdomain
import logging.config\nlogging.config.dictConfig({'version': 1}) -> logging.config
import multiprocessing\nmultiprocessing.set_start_method('spawn', force=True) -> \
multiprocessing.set_start_method
import __main__\n__main__.Own = object() -> __main__, __main__.Own
! vars(sys.modules['__main__'])['Another'] = object() -> __main__
! import string\nstring.__dict__.update(hexdigits='01') -> string.hexdigits
import util\nsys.modules['old'] = util -> sys.modules
import yaml\nyaml.SafeLoader.add_constructor('!own', handle) -> \
yaml.loader.SafeLoader.yaml_constructors
asyncio.set_event_loop_policy(type('P', (asyncio.DefaultEventLoopPolicy,), {})()) -> \
asyncio.set_event_loop_policy
asyncio.set_child_watcher(asyncio.SafeChildWatcher()) -> asyncio.set_event_loop_policy
! from matplotlib import pyplot\npyplot.plot([1, 2])\npyplot.close() -> matplotlib.pyplot.figure
os.environ.pop('HOME', None) -> os.environ['HOME']
threading.stack_size(1 << 20) -> threading.stack_size
old = json.dumps\njson.dumps = lambda *a: old(*a) -> json.dumps
import builtins\nbuiltins.mine = 1 -> builtins.mine
import string\nstring.digits = '01' -> string.digits
import tempfile\ntempfile.tempdir = tempfile.mkdtemp() -> tempfile.tempdir
import http.client\nhttp.client.HTTPConnection.debuglevel = 1 -> \
http.client.HTTPConnection.debuglevel
gc.callbacks.append(lambda *_: None) -> gc.callbacks
import sqlite3, uuid\nsqlite3.register_adapter(uuid.UUID, str) -> sqlite3.register_adapter
numpy.random.set_state(numpy.random.RandomState(1).get_state()) -> numpy.random.seed, \
numpy.random.set_state
numpy.float_like = float -> numpy.float_like
from unittest import mock\nwith mock.patch.object(json, 'loads', str): pass -> json.loads
"""
HARMLESS = r"""
random.random(); random.shuffle([1, 2, 3]); numpy.random.rand(3)
random.Random(1).random(); numpy.random.default_rng(1).random()
random.seed()
dict(os.environ); os.environ.get('HOME'); os.environ.setdefault('PATH', '')
os.environ['OMP_NUM_THREADS'] = '1'
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
logging.basicConfig(level=logging.INFO)\nlogging.getLogger('x').info('said')
kept = logging.FileHandler('/dev/null')\nlogging.getLogger(__name__).addHandler(kept)\n\
logging.getLogger('x').addHandler(logging.NullHandler())\n\
logging.getLogger('x').addHandler(logging.StreamHandler(sys.stdout))
import ctypes\nctypes.CDLL(None).getpid()
import multiprocessing\nmultiprocessing.get_context('spawn').Semaphore()
import networkx\nnetworkx.path_graph(3)
import rich\nrich.get_console().print('x')
import importlib, util\nimportlib.reload(util)
from flask import request, g
from unittest import mock\nimport util\nclass Own: a = 1\nwith mock.patch.object(Own, 'a'), \
mock.patch('util.wave'): pass
import yaml\nfound = {}\nfound.update(a=1)\nyaml.safe_load('1')\nyaml.SafeLoader('1').update(1)
import tempfile\nclass Own: pass\nvars(Own())['a'] = \
1\nOwn().__dict__.update(a=1)\ntempfile.gettempdir()
import sqlite3\nsqlite3.connect(':memory:').close()
from dateutil import tz\ntz.gettz(f'UTC+{time.monotonic_ns() % 9}')
logging.getLogger(__name__).setLevel(logging.DEBUG)
print('x')\nsys.stdout.write('y')\nsys.stdout.flush()
warnings.warn('careful')
with warnings.catch_warnings():\n    warnings.simplefilter('ignore')
with decimal.localcontext() as c:\n    c.prec = 5
decimal.getcontext().prec = 5
numpy.linalg.inv(numpy.eye(3)); str(numpy.arange(3))
with numpy.printoptions(precision=2): str(numpy.ones(3))
import wave, sqlite3, concurrent.futures, unittest.mock
t = threading.Thread(target=print)\nt.start()\nt.join()
from concurrent.futures import ThreadPoolExecutor as P\nwith P(2) as p: list(p.map(len, ['a']))
import subprocess\nsubprocess.run(['true'], env={'A': '1'})
async def main(): await asyncio.sleep(0)\nasyncio.run(main())
import tempfile\nwith tempfile.TemporaryFile() as f: f.write(b'x')
from matplotlib.figure import Figure\nFigure().subplots().plot([1])
library = type(sys)('library')\nexec('import warnings%def check():%'\
' with warnings.catch_warnings(record=True):%  warnings.simplefilter(\'error\')'\
.replace('%', chr(10)), vars(library))\nlibrary.check()
global COUNT\nCOUNT = 1
json.dumps({'a': json.loads('[1]')}); csv.reader(['a,b']);ElementTree.fromstring('<a/>'); \
locale.setlocale(locale.LC_ALL)
from collections.abc import Sequence\nSequence.register(type('Own', (), {'__module__': __name__}))
json.JSONEncoder().item_separator = ','\nimport \
configparser\nconfigparser.ConfigParser().optionxform = str
import mimetypes\nmimetypes.guess_type('a.html')
import pickle, copy\npickle.loads(pickle.dumps(copy.deepcopy([1])))
import datetime\ndatetime.datetime.strptime('2020', '%Y').strftime('%c')
logging.getLogger('urllib3').disabled = True\nlogging.captureWarnings(True)
import faulthandler, tracemalloc\nfaulthandler.enable()\ntracemalloc.start()\ngc.collect(); \
socket.socketpair()[0].settimeout(3)
asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
warnings.filterwarnings('ignore', message='x')
import jinja2\njinja2.Template('{{ x }}').render(x=1)
"""
#: Statements at the top of a handler's module -> what they set that can be taken back -> what they
#: change everywhere.
AT_IMPORT = r"""
import ssl\nssl._create_default_https_context = ssl._create_unverified_context ->  -> \
ssl._create_default_https_context
import sys, wave\nsys.modules['sunau'] = wave ->  -> sys.modules
from wave import Wave_read\nimport wave\nwave.open = print ->  -> wave.open
import signal\nsignal.signal(signal.SIGUSR1, print) ->  -> signal.signal
import csv, sys\ncsv.field_size_limit(sys.maxsize) ->  -> csv.field_size_limit
import json\njson.JSONEncoder.default = lambda self, it: str(it) ->  -> \
json.encoder.JSONEncoder.default
import json\njson.JSONEncoder.item_separator = ',' ->  -> json.encoder.JSONEncoder.item_separator
import jsonschema\njsonschema.FormatChecker.cls_checks('even')(lambda value: True) ->  -> \
jsonschema._format.FormatChecker.checkers
import rich\nrich.reconfigure(width=30) ->  -> rich.reconfigure
import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/vendor')\nimport given ->  -> \
sys.modules
! import warnings\nwarnings.simplefilter('error') ->  -> warnings.filterwarnings
import os\nos.environ['REGION'] = 'x' -> os.environ['REGION']
import sets -> os.environ['REGION']
import os\nos.chdir(os.path.dirname(__file__)) -> os.chdir
import os, time\nos.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset() -> os.environ['TZ'] -> time.tzset
import os\nos.umask(0o77) -> os.umask
import io, sys\nsys.stdout = io.StringIO() ->  -> sys.stdout
import locale\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8') -> locale.setlocale
import decimal\ndecimal.DefaultContext.prec = 5 ->  -> decimal.DefaultContext.prec
import gc\ngc.disable() -> gc.disable
import sys\nsys.path.append('/opt/more') -> sys.path
import socket\nsocket.setdefaulttimeout(5) -> socket.setdefaulttimeout
import sys\nsys.setrecursionlimit(9000) -> sys.setrecursionlimit
import logging\nlogging.disable() -> logging.disable
import random, numpy\nrandom.seed(1)\nnumpy.random.seed(1)
import numpy, matplotlib.pyplot, sqlite3
import logging.config\nlogging.config.dictConfig({'version': 1}) -> logging.config
import multiprocessing\nmultiprocessing.set_start_method('spawn') -> \
multiprocessing.set_start_method
import __main__\n__main__.Own = dict ->  -> __main__, __main__.Own
import logging\nlogging.addLevelName(25, 'NOTICE') -> logging.addLevelName
! import os\nos.environ['NETWORKX_FALLBACK_TO_NX'] = '1'\nimport networkx -> \
os.environ['NETWORKX_FALLBACK_TO_NX'] -> networkx by os.environ['NETWORKX_FALLBACK_TO_NX']
from pydantic.v1 import BaseModel, validator\nclass Order(BaseModel):\n    price: int\n    \
@validator('price')\n    def check(cls, value): return value ->  -> \
pydantic.v1.class_validators._FUNCS
import ctypes\nSEED = ctypes.CDLL(None).srand ->  -> ctypes.srand
from prometheus_client import Counter\nCounter('orders', 'all') ->  -> prometheus_client.REGISTRY
import logging\nlogging.basicConfig(level=logging.INFO)\n\
logging.getLogger().setLevel(logging.DEBUG)
import warnings\nwarnings.filterwarnings('ignore')
import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport numpy
import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import os, sys\nsys.path.insert(0, os.path.dirname(__file__))
import util

"""

_MODULES = (
    "asyncio contextlib csv decimal gc io json locale logging numpy os random socket sys "
    "threading time warnings"
)
#: Name -> what imports it, where code uses it: a snapshot takes as long as its code has names.
IMPORTS = {
    **{name: f"import {name}" for name in re.findall(r"\w+", _MODULES)},
    "urllib": "import urllib.request",
    "setlocale": "from locale import setlocale",
    "add_type": "from mimetypes import add_type",
    "seed": "from random import seed",
    "ElementTree": "from xml.etree import ElementTree",
    "numpy_seed": "import numpy; numpy_seed = numpy.random.seed",
}


def _handler(body: str) -> str:
    words = set(re.findall(r"\w+", body))
    imports = "\n".join(line for name, line in IMPORTS.items() if name in words)
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{imports}\n\ndef handle(req):\n{lines}    return req\n"


_FILES = {
    "util.py": "import wave\n",
    "vendor/given.py": "",
    "vendor/given-1.dist-info/METADATA": "",
    "sets.py": "import os\nos.environ['REGION'] = 'x'\n",
}


class Row(NamedTuple):
    """A line of a table: code, and what it changes in runs, at its import, and everywhere."""

    code: str
    found: list[list[str]]
    alone: bool


def rows(table, in_runs):
    for line in table.replace("\\\n", "").strip().splitlines():
        code, *changed = line.replace("! ", "").split(" ->")
        found = [[each for each in names.strip().split(", ") if each] for names in changed]
        found = [*found, [], []] if in_runs else [[], *found, [], []]
        yield Row(code.replace(r"\n", "\n"), [*found, []][:3], line.startswith("! "))


#: Rows of one function: of more, its snapshots take longer than those of two functions.
MOST = 12


def together(table):
    """Groups of rows that change different things: their code is one function."""
    groups = []
    for row in table:
        changed = set(chain(*row.found))
        for group, of_group in groups:
            alone = row.alone or group[0].alone
            if len(group) < MOST and not changed & of_group and not alone:
                break
        else:
            groups.append((group := [], of_group := set()))
        group.append(row)
        of_group |= changed
    return [group for group, _ in groups]


@pytest.mark.parametrize("kind", ["in runs", "harmless", "at its import"])
def test_what_a_function_changes_is_found_and_what_concerns_no_other_is_not(kind, tmp_path):
    table = {"in runs": IN_RUNS, "harmless": HARMLESS, "at its import": AT_IMPORT}[kind]
    folders, expected = {}, {}
    for number, group in enumerate(together(rows(table, "import" not in kind))):
        code = "\n".join(row.code for row in group)
        whole = f"{code}\ndef handle(req): return req\n" if "import" in kind else _handler(code)
        folders[f"f{number}"] = {"handler.py": whole, **_FILES}
        found = zip(*(row.found for row in group), strict=True)
        expected[f"f{number}"] = ([sorted(chain(*each)) for each in found], code)
    told = changes_of(folders, tmp_path)
    differs = {
        name: (told[name], *known)
        for name, known in expected.items()
        if not isinstance(told[name], list) or [*map(sorted, told[name])] != known[0]
    }
    assert not differs


def test_the_calls_that_are_watched_are_those_of_their_modules() -> None:
    """Of those that change something whatever their arguments are, a few are rows above."""
    for module, calls in CALLS.items():
        if module.partition(".")[0] in sys.stdlib_module_names:
            assert {*calls} <= {*dir(importlib.import_module(module))}, module


SETS = """
import logging, os, random, socket, sys
os.environ["REGION"] = "x"
os.environ["HOME"] = "/elsewhere"
sys.path.append("/opt/more")
socket.setdefaulttimeout(5)
logging.disable(logging.WARNING)
random.seed(1)

def handle(req):
    return json.dumps(seen())
"""
SEES = """
import json, logging, os, socket, sys

def seen():
    warns = logging.getLogger("any").isEnabledFor(logging.WARNING)
    variables = [os.environ.get(name) for name in ("REGION", "HOME")]
    return [*variables, "/opt/more" in sys.path, socket.getdefaulttimeout(), warns]
"""


@pytest.mark.each_once
@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize("processes", [[[0], [1]], [[1], [0]], [[], [0], [1]]])
def test_what_an_import_sets_is_there_in_processes_that_run_its_function(
    processes, mechanism, start, wrap_image
):
    reads = "def handle(req):\n    return json.dumps(seen())\n"
    handlers = {"sets": {"handler.py": SEES + SETS}, "reads": {"handler.py": SEES + reads}}
    image = wrap_image(handlers, processes, entry={"output": [0, 1]}, mechanism=mechanism)
    server = start(image, HOME="/here")
    for _ in range(2):
        assert server.request().json == [
            ["x", "/elsewhere", True, 5.0, False],
            [None, "/here", False, None, True],
        ]


def test_a_seed_at_import_is_not_that_of_other_functions(start, wrap_image):
    """Nor of every request, where the process is forked for it."""
    draws = "def handle(req):\n    return str(random.random())\n"
    seeds = f"import random\nrandom.seed(1)\n{draws}"
    handlers = {"seeds": {"handler.py": seeds}, "draws": {"handler.py": f"import random\n{draws}"}}
    image = wrap_image(handlers, [[0, 1]], entry={"output": [0, 1]})
    answers = [start(image).request().json for _ in range(2)]
    assert len({number for answer in answers for number in answer}) == 4


#: What a function does at its import, what it answers, and that answer.
APART = [
    ("multiprocessing.set_start_method('spawn')", "multiprocessing.get_start_method()", "spawn"),
    ("multiprocessing.set_start_method('fork')", "multiprocessing.get_start_method()", "fork"),
    ("warnings.filterwarnings('ignore')", "warned()", []),
    ("", "warned()", ["careful"]),
    ("logging.config.dictConfig({'version': 1})", "1", 1),
    (
        "LOGS = [*map(logging.getLogger, (__name__, 'a'))]",
        "[each.warning('no') for each in LOGS]",
        [None] * 2,
    ),
]
_APART = """
import json, logging.config, multiprocessing, warnings
{}
def warned():
    with warnings.catch_warnings(record=True) as found:
        warnings.warn("careful")
    return [str(each.message) for each in found]
def handle(req):
    return json.dumps({})
"""


@pytest.mark.parametrize("first", [[], [0]])
def test_what_a_function_chooses_at_its_import_is_no_others(first, start, wrap_image, eventually):
    """How processes start, which warnings there are, and what becomes of records."""
    handlers = {f"f{n}": _APART.format(sets, gives) for n, (sets, gives, _) in enumerate(APART)}
    processes = [first, *([n] for n in range(len(APART)) if n not in first)]
    server = start(wrap_image(handlers, processes, entry={"output": [*range(len(APART))]}))
    assert [server.request().json for _ in range(2)] == [[answer for *_, answer in APART]] * 2
    assert eventually(lambda: server.log.read_text().count("[f5] no\n") == 4)


def test_no_function_gets_the_event_loop_that_another_has_set(start, wrap_image):
    sets = """
        import asyncio
        def handle(req):
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
            return "1"
    """
    gets = """
        import asyncio
        def handle(req):
            try:
                loop = asyncio.get_event_loop()
            except RuntimeError:
                loop = asyncio.new_event_loop()
            return loop.run_until_complete(asyncio.sleep(0, "ran"))
    """
    handlers, inputs = {"sets": sets, "gets": gets}, {0: None, 1: 0}
    image = wrap_image(handlers, [[0, 1]], inputs=inputs, entry={"output": 1})
    server = start(image)
    assert [server.request().text for _ in range(3)] == ["ran"] * 3


def test_functions_do_not_see_how_the_wrap_was_started(start, wrap_image):
    """Nor if it has begun anew."""
    handler = """
        import json, os, sys
        LEFT_OPEN = os.pipe()
        def handle(req):
            return json.dumps(sys.argv[1:])
    """
    server = start(wrap_image({"late": handler}, [[], [0]], entry={"output": 0}))
    assert server.request().json == []


def test_what_libraries_keep_outside_of_python_is_found_by_calls(tmp_path: Path) -> None:
    found = {
        "library.event.listen(dict, 'connect', print)": ["sqlalchemy.event.listen"],
        "class Own: pass\nlibrary.event.listen(Own, 'connect', print)": [],
        "library.event.listen(object(), 'connect', print)": [],
        "other.sql('create table t (a int)')": ["duckdb.sql"],
        "other.sql(' SELECT 1')": [],
        "other.connect(':memory:named')": ["duckdb.connect"],
        "other.connect()": [],
        "other.set_proxy('shop')": ["duckdb.Socket.proxy"],
        "other.remember('shop')": [],
        "other.GENERATOR.seed(1)": ["duckdb.GENERATOR"],
    }
    lib = tmp_path / "lib"
    for name, text in {
        "sqlalchemy/__init__.py": "",
        "sqlalchemy/event.py": "def listen(target, name, call): pass\n",
        "duckdb.py": "def sql(query): pass\ndef connect(database=':memory:'): pass\n"
        "import random\nGENERATOR = random.Random()\n"
        "class Socket: proxy = ''\ndef set_proxy(host): Socket.proxy = host\n"
        "CACHE = {}\ndef remember(host): return CACHE.setdefault(host, host)\n",
    }.items():
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text(text)
    imports = "import sqlalchemy.event\nimport duckdb as other\nlibrary = sqlalchemy\n"
    top = f"import sys\nsys.path.append({str(lib)!r})\n{imports}"
    handlers = {
        f"f{number}": {"handler.py": top + _handler(code)} for number, code in enumerate(found)
    }
    told = changes_of(handlers, tmp_path)
    assert {code: told[f"f{n}"][0] for n, code in enumerate(found)} == found
