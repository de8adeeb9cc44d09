"""What a function changes of what its process shares is found, whatever it calls for that."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from textwrap import dedent

import pytest

from tests.templates.changes import changes_of

#: Behaviour -> the body of a handler, and what it is found to change.
IN_RUNS = {
    "environ-set": ("os.environ['MODE'] = 'x'", ["os.environ['MODE']"]),
    "environ-setdefault": ("os.environ.setdefault('MODE', 'x')", ["os.environ['MODE']"]),
    "environ-update": ("os.environ.update(A='1', B='2')", ["os.environ['A']", "os.environ['B']"]),
    "environ-for-a-while": (
        "os.environ['TOKEN'] = req; os.environ.pop('TOKEN')",
        ["os.environ['TOKEN']"],
    ),
    "environ-patched": (
        "from unittest import mock\nwith mock.patch.dict(os.environ, {'A': '1'}): pass",
        ["os.environ"],
    ),
    "putenv": ("os.putenv('LANG', 'xx')", ["os.environ['LANG']"]),
    "environ-in-a-thread": (
        "t = threading.Thread(target=os.environ.__setitem__, args=('A', '1')); t.start(); t.join()",
        ["os.environ['A']"],
    ),
    "setter-by-its-name": ("add_type('text/x-own', '.own')", ["mimetypes.add_type"]),
    "types-by-files": ("import mimetypes\nmimetypes.init(files=[])", ["mimetypes.init"]),
    "time-zones": ("import zoneinfo\nzoneinfo.reset_tzpath(to=['/'])", ["zoneinfo.reset_tzpath"]),
    "audit": ("sys.addaudithook(lambda *_: None)", ["sys.addaudithook"]),
    "at-fork": ("os.register_at_fork(before=lambda: None)", ["os.register_at_fork"]),
    "watchdog": (
        "import faulthandler\nfaulthandler.dump_traceback_later(60)\n"
        "faulthandler.cancel_dump_traceback_later()",
        ["faulthandler.dump_traceback_later"],
    ),
    "decimal-traps": (
        "decimal.DefaultContext.traps[decimal.Inexact] = True",
        ["decimal.DefaultContext.traps"],
    ),
    "chdir": ("os.chdir('/')", ["os.chdir"]),
    "chdir-for-a-while": ("here = os.getcwd()\nos.chdir('/')\nos.chdir(here)", ["os.chdir"]),
    "umask": ("os.umask(0o27)", ["os.umask"]),
    "umask-for-a-while": ("os.umask(os.umask(0o27))", ["os.umask"]),
    "nice": ("os.nice(1)", ["os.nice"]),
    "dup2": ("os.dup2(os.open('/dev/null', os.O_WRONLY), 1)", ["os.dup2"]),
    "sys-path": ("sys.path.insert(0, '/nowhere')", ["sys.path"]),
    "argv": ("sys.argv[:] = ['x']", ["sys.argv"]),
    "stdout-replaced": ("sys.stdout = io.StringIO()", ["sys.stdout"]),
    "stdout-redirected": (
        "with contextlib.redirect_stdout(io.StringIO()): print('x')",
        ["sys.stdout"],
    ),
    "stderr-redirected": ("with contextlib.redirect_stderr(io.StringIO()): pass", ["sys.stderr"]),
    "stdin-replaced": ("sys.stdin = io.StringIO('x')", ["sys.stdin"]),
    "stdout-method": ("sys.stdout.write = lambda text: len(text)", ["sys.stdout"]),
    "excepthook": ("sys.excepthook = lambda *_: None", ["sys.excepthook"]),
    "threading-excepthook": ("threading.excepthook = print", ["threading.excepthook"]),
    "displayhook": ("sys.displayhook = print", ["sys.displayhook"]),
    "settrace": ("sys.settrace(lambda *_: None)", ["sys.settrace"]),
    "recursion": ("sys.setrecursionlimit(5000)", ["sys.setrecursionlimit"]),
    "recursion-for-a-while": (
        "old = sys.getrecursionlimit()\nsys.setrecursionlimit(5000)\nsys.setrecursionlimit(old)",
        ["sys.setrecursionlimit"],
    ),
    "switch-interval": ("sys.setswitchinterval(0.5)", ["sys.setswitchinterval"]),
    "path-hook": ("sys.path_hooks.append(print)", ["sys.path_hooks"]),
    "dlopen": ("sys.setdlopenflags(258)", ["sys.setdlopenflags"]),
    "asyncgen-hooks": ("sys.set_asyncgen_hooks(firstiter=print)", ["sys.set_asyncgen_hooks"]),
    "gc": ("gc.disable()", ["gc.disable"]),
    "memory-traced": (
        "import tracemalloc\ntracemalloc.start()\ntracemalloc.stop()",
        ["tracemalloc.stop"],
    ),
    "gc-thresholds": ("gc.set_threshold(1, 1, 1)", ["gc.set_threshold"]),
    "locale": ("locale.setlocale(locale.LC_ALL, 'C.UTF-8')", ["locale.setlocale"]),
    "locale-for-a-while": (
        "old = setlocale(locale.LC_NUMERIC)\nsetlocale(locale.LC_NUMERIC, 'C.UTF-8')\n"
        "setlocale(locale.LC_NUMERIC, old)",
        ["locale.setlocale"],
    ),
    "time-zone": (
        "os.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()",
        ["os.environ['TZ']", "time.tzset"],
    ),
    "logging-disable": ("logging.disable(logging.WARNING)", ["logging.disable"]),
    "root-level": ("logging.getLogger().setLevel(logging.ERROR)", ["logging.root"]),
    "root-handler": (
        "logging.getLogger().addHandler(logging.StreamHandler(io.StringIO()))",
        ["logging.root"],
    ),
    "root-handler-for-a-while": (
        "kept = logging.StreamHandler(io.StringIO())\nlogging.getLogger().addHandler(kept)\n"
        "logging.getLogger().removeHandler(kept)",
        ["logging.root"],
    ),
    "handler-of-a-library": (
        "kept, of = logging.FileHandler('/dev/null'), logging.getLogger('urllib3')\n"
        "of.addHandler(kept)\nof.removeHandler(kept)",
        ["logging.getLogger('urllib3')"],
    ),
    "program-that-runs-on": (
        "import subprocess\nsubprocess.Popen(['sleep', '2'])",
        ["programs that run on"],
    ),
    "seed-of-a-lazy-library": (
        "import numpy as np\nnp.random.mtrand._rand.seed(1)",
        ["numpy.random.seed"],
    ),
    "filter-of-all-records": (
        "logging.getLogger().addFilter(lambda record: False)",
        ["logging.root"],
    ),
    "program-in-the-background": ("os.system('sleep 2 &')", ["programs that run on"]),
    "daemon-that-runs-on": (
        "threading.Thread(target=threading.Event().wait, daemon=True).start()",
        ["daemon threads that run on"],
    ),
    "variable-by-c": (
        "import ctypes\nctypes.CDLL(None).setenv(b'MODE', b'x', 1)",
        ["ctypes.setenv"],
    ),
    "database-of-the-process": (
        "import sqlite3\nsqlite3.connect('file::memory:?cache=shared', uri=True).close()",
        ["sqlite3.connect"],
    ),
    "seed-of-a-library": (
        "from dash.development import base_component\nbase_component.rd.seed(1)",
        ["dash.development.base_component.rd"],
    ),
    "registry-of-a-library": (
        "from PIL import Image\nImage.register_open(f'OWN{len(Image.ID)}', print)",
        ["PIL.Image.ID", "PIL.Image.OPEN"],
    ),
    "checks-of-a-library": (
        "import jsonschema\njsonschema.FormatChecker.cls_checks('even')(lambda value: True)",
        ["jsonschema._format.FormatChecker.checkers"],
    ),
    "names-of-levels": ("logging.addLevelName(logging.INFO, 'info')", ["logging.addLevelName"]),
    "program-of-processes": (
        "import multiprocessing\nmultiprocessing.set_executable('/bin/false')",
        ["multiprocessing.set_executable"],
    ),
    "key-of-a-registry": (
        "from PIL import Image\nImage.register_extension('PNG', f'.{time.monotonic_ns()}')",
        ["PIL.Image.EXTENSION"],
    ),
    "attribute-in-a-slot": (
        "import networkx\nnetworkx.config.cache_converted_graphs ^= True",
        ["networkx.config.cache_converted_graphs"],
    ),
    "errors-by-c": (
        "import scipy.special\nscipy.special.seterr(**scipy.special.geterr())",
        ["scipy.special.seterr"],
    ),
    "parameters-for-a-while": (
        "import matplotlib\nwith matplotlib.rc_context({'font.size': 20}): pass",
        ["matplotlib.rc_context"],
    ),
    "module-loaded-again": (
        "import importlib, string\nimportlib.reload(string)",
        ["importlib.reload"],
    ),
    "set-by-a-library": (
        "import attr\nattr.set_run_validators(False)",
        ["attr.set_run_validators"],
    ),
    "set-by-what-a-library-calls": (
        "import attr\nattr.validators.set_disabled(True)",
        ["attr.validators.set_disabled"],
    ),
    "colours": (
        "import matplotlib\nfrom matplotlib.colors import ListedColormap\n"
        "own = ListedColormap(['red'], name=f'own{time.monotonic_ns()}')\n"
        "matplotlib.colormaps.register(own)",
        ["matplotlib.colormaps", "matplotlib.colormaps._cmaps"],
    ),
    "mock-class": (
        "from unittest import mock\nwith mock.patch('requests.adapters.HTTPAdapter.send'): pass",
        ["requests.adapters.HTTPAdapter.send"],
    ),
    "logger-class": (
        "logging.setLoggerClass(type('L', (logging.Logger,), {}))",
        ["logging.setLoggerClass"],
    ),
    "warnings-error": ("warnings.simplefilter('error')", ["warnings.filterwarnings"]),
    "warnings-error-for-a-while": (
        "with warnings.catch_warnings():\n    warnings.simplefilter('error')",
        ["warnings.filterwarnings"],
    ),
    "warnings-recorded": (
        "with warnings.catch_warnings(record=True): pass",
        ["warnings.catch_warnings"],
    ),
    "showwarning": ("warnings.showwarning = lambda *_: None", ["warnings.showwarning"]),
    "default-context": ("decimal.DefaultContext.prec = 5", ["decimal.DefaultContext.prec"]),
    "socket-timeout": ("socket.setdefaulttimeout(2)", ["socket.setdefaulttimeout"]),
    "socket-replaced": ("socket.getaddrinfo = print", ["socket.getaddrinfo"]),
    "mock-patch": (
        "from unittest import mock\nwith mock.patch('time.time', return_value=1): pass",
        ["time.time"],
    ),
    "method-replaced": (
        "json.JSONEncoder.default = lambda self, it: str(it)",
        ["json.encoder.JSONEncoder.default"],
    ),
    "attribute-of-a-class": (
        "json.JSONEncoder.item_separator = ','",
        ["json.encoder.JSONEncoder.item_separator"],
    ),
    "attribute-of-a-class-by-its-name": (
        "setattr(json.JSONEncoder, 'item_separator', ',')",
        ["json.encoder.JSONEncoder.item_separator"],
    ),
    "method-with-more-arguments": (
        "import requests, functools\nSession = requests.Session\n"
        "Session.request = functools.partialmethod(Session.request, timeout=5)",
        ["requests.sessions.Session.request"],
    ),
    "registry-of-a-base-class": (
        "import configparser\nconfigparser.ConfigParser.BOOLEAN_STATES['si'] = True",
        ["configparser.RawConfigParser.BOOLEAN_STATES"],
    ),
    "types-of-files": (
        "import mimetypes\nmimetypes.types_map.update({'.own': 'a/b'})",
        ["mimetypes.types_map"],
    ),
    "list-of-a-module": (
        "from urllib.parse import uses_netloc\nuses_netloc.append('own')",
        ["urllib.parse.uses_netloc"],
    ),
    "dictionary-of-a-module": (
        "import http.client\nhttp.client.responses[499] = 'Own'",
        ["http.client.responses"],
    ),
    "object-of-a-module": (
        "from decimal import BasicContext\nBasicContext.prec = 5",
        ["decimal.BasicContext.prec"],
    ),
    "class-of-another-library": (
        "from collections.abc import Sequence\nSequence.register(numpy.ndarray)",
        ["collections.abc.Sequence"],
    ),
    "builtin-replaced": ("import builtins\nbuiltins.print = len", ["builtins.print"]),
    "resource-limit": ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", ["resource.setrlimit"]),
    "seed": ("random.seed(42)", ["random.seed"]),
    "seed-by-another-name": ("seed(42)", ["random.seed"]),
    "seed-for-a-while": (
        "state = random.getstate()\nrandom.seed(1)\nrandom.setstate(state)",
        ["random.seed", "random.setstate"],
    ),
    "numpy-seed": ("numpy.random.seed(42)", ["numpy.random.seed"]),
    "numpy-seed-by-another-name": ("numpy_seed(42)\nnumpy.random.rand()", ["numpy.random.seed"]),
    "csv-limit": ("csv.field_size_limit(1 << 30)", ["csv.field_size_limit"]),
    "dialect": ("csv.register_dialect('own', delimiter=';')", ["csv.register_dialect"]),
    "text-domain": ("import gettext\ngettext.textdomain('own')", ["gettext.textdomain"]),
    "first-weekday": ("import calendar\ncalendar.setfirstweekday(6)", ["calendar.setfirstweekday"]),
    "archive-format": (
        "import shutil\nshutil.register_archive_format('own', print)",
        ["shutil.register_archive_format"],
    ),
    "codec-errors": (
        "import codecs\ncodecs.register_error('own', codecs.ignore_errors)",
        ["codecs.register_error"],
    ),
    "logging-config": (
        "import logging.config\nlogging.config.dictConfig({'version': 1})",
        ["logging.config"],
    ),
    "start-method": (
        "import multiprocessing\nmultiprocessing.set_start_method('spawn', force=True)",
        ["multiprocessing.set_start_method"],
    ),
    "main-module": ("import __main__\n__main__.Own = object()", ["__main__", "__main__.Own"]),
    "main-module-by-its-dictionary": (
        "vars(sys.modules['__main__'])['Another'] = object()",
        ["__main__"],
    ),
    "module-by-its-dictionary": (
        "import string\nstring.__dict__.update(hexdigits='01')",
        ["string.hexdigits"],
    ),
    "own-module-by-another-name": ("import util\nsys.modules['old'] = util", ["sys.modules"]),
    "registry-of-a-class": (
        "import yaml\nyaml.SafeLoader.add_constructor('!own', handle)",
        ["yaml.loader.SafeLoader.yaml_constructors"],
    ),
    "xml-namespace": (
        "ElementTree.register_namespace('x', 'urn:x')",
        ["xml.etree.ElementTree.register_namespace"],
    ),
    "opener": (
        "urllib.request.install_opener(urllib.request.build_opener())",
        ["urllib.request.install_opener"],
    ),
    "loop-policy": (
        "asyncio.set_event_loop_policy(type('P', (asyncio.DefaultEventLoopPolicy,), {})())",
        ["asyncio.set_event_loop_policy"],
    ),
    "figure": (
        "from matplotlib import pyplot\npyplot.plot([1, 2])\npyplot.close()",
        ["matplotlib.pyplot.figure"],
    ),
    "environ-left-out": ("os.environ.pop('HOME', None)", ["os.environ['HOME']"]),
    "stack-size": ("threading.stack_size(1 << 20)", ["threading.stack_size"]),
    "trace-of-threads": ("threading.settrace(lambda *_: None)", ["threading.settrace"]),
    "function-replaced": ("old = json.dumps\njson.dumps = lambda *a: old(*a)", ["json.dumps"]),
    "builtin-added": ("import builtins\nbuiltins.mine = 1", ["builtins.mine"]),
    "constant": ("import math\nmath.pi = 3", ["math.pi"]),
    "text-of-a-module": ("import string\nstring.digits = '01'", ["string.digits"]),
    "folder-of-files": (
        "import tempfile\ntempfile.tempdir = tempfile.mkdtemp()",
        ["tempfile.tempdir"],
    ),
    "number-of-a-class": (
        "import http.client\nhttp.client.HTTPConnection.debuglevel = 1",
        ["http.client.HTTPConnection.debuglevel"],
    ),
    "gc-callback": ("gc.callbacks.append(lambda *_: None)", ["gc.callbacks"]),
    "pickling": (
        "import copyreg\ncopyreg.pickle(complex, lambda c: (complex, ()))",
        ["copyreg.pickle"],
    ),
    "codec": ("import codecs\ncodecs.register(lambda name: None)", ["codecs.register"]),
    "adapter": (
        "import sqlite3, uuid\nsqlite3.register_adapter(uuid.UUID, str)",
        ["sqlite3.register_adapter"],
    ),
    "numpy-state": (
        "numpy.random.set_state(numpy.random.RandomState(1).get_state())",
        ["numpy.random.seed", "numpy.random.set_state"],
    ),
    "name-in-numpy": ("numpy.float_like = float", ["numpy.float_like"]),
    "mock-object": (
        "from unittest import mock\nwith mock.patch.object(json, 'loads', str): pass",
        ["json.loads"],
    ),
    "plot-parameters": (
        "import matplotlib\nmatplotlib.rcParams['font.size'] = 20 + time.monotonic()",
        ["matplotlib.rcParams"],
    ),
}

HARMLESS = {
    "random-numbers": "random.random(); random.shuffle([1, 2, 3]); numpy.random.rand(3)",
    "own-generators": "random.Random(1).random(); numpy.random.default_rng(1).random()",
    "fresh-entropy": "random.seed()",
    "environ-read": "dict(os.environ); os.environ.get('HOME'); os.environ.setdefault('PATH', '')",
    "environ-tuning": "os.environ['OMP_NUM_THREADS'] = '1'",
    "own-folder": "sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))",
    "logs": "logging.basicConfig(level=logging.INFO)\nlogging.getLogger('x').info('said')",
    "handlers-of-own-loggers": "kept = logging.FileHandler('/dev/null')\n"
    "logging.getLogger(__name__).addHandler(kept)\n"
    "logging.getLogger('x').addHandler(logging.NullHandler())\n"
    "logging.getLogger('x').addHandler(logging.StreamHandler(sys.stdout))",
    "calls-c": "import ctypes\nctypes.CDLL(None).getpid()",
    "tracker-of-resources": "import multiprocessing\n"
    "multiprocessing.get_context('spawn').Semaphore()",
    "compiled-at-its-first-call": "import networkx\nnetworkx.path_graph(3)",
    "made-when-needed": "import rich\nrich.get_console().print('x')",
    "own-module-loaded-again": "import importlib, util\nimportlib.reload(util)",
    "context-of-flask": "from flask import request, g",
    "mock-of-its-own": "from unittest import mock\nimport util\nclass Own: a = 1\n"
    "with mock.patch.object(Own, 'a'), mock.patch('util.wave'): pass",
    "pattern-of-a-library": "import yaml\nfound = {}\nfound.update(a=1)\nyaml.safe_load('1')\n"
    "yaml.SafeLoader('1').update(1)",
    "dictionaries-of-its-own": "import tempfile\nclass Own: pass\nvars(Own())['a'] = 1\n"
    "Own().__dict__.update(a=1)\ntempfile.gettempdir()",
    "own-database": "import sqlite3\nsqlite3.connect(':memory:').close()",
    "caches": "from dateutil import tz\ntz.gettz(f'UTC+{time.monotonic_ns() % 9}')",
    "own-logger": "logging.getLogger(__name__).setLevel(logging.DEBUG)",
    "prints": "print('x')\nsys.stdout.write('y')\nsys.stdout.flush()",
    "warns": "warnings.warn('careful')",
    "warnings-ignored": "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')",
    "local-context": "with decimal.localcontext() as c:\n    c.prec = 5",
    "context": "decimal.getcontext().prec = 5",
    "numpy": "numpy.linalg.inv(numpy.eye(3)); str(numpy.arange(3))",
    "numpy-options-for-a-while": "with numpy.printoptions(precision=2): str(numpy.ones(3))",
    "late-imports": "import wave, sqlite3, concurrent.futures, unittest.mock",
    "late-library": "import scipy.stats\nscipy.stats.norm.rvs(size=3)",
    "threads": "t = threading.Thread(target=print)\nt.start()\nt.join()",
    "pool-of-threads": "from concurrent.futures import ThreadPoolExecutor as P\n"
    "with P(2) as p: list(p.map(len, ['a']))",
    "subprocess": "import subprocess\nsubprocess.run(['true'], env={'A': '1'})",
    "asyncio": "async def main(): await asyncio.sleep(0)\nasyncio.run(main())",
    "files": "import tempfile\nwith tempfile.TemporaryFile() as f: f.write(b'x')",
    "plots-without-pyplot": "from matplotlib.figure import Figure\nFigure().subplots().plot([1])",
    "warnings-error-in-a-library": "library = type(sys)('library')\n"
    "exec('import warnings\\ndef check():\\n with warnings.catch_warnings(record=True):\\n'"
    "     \"  warnings.simplefilter('error')\", vars(library))\nlibrary.check()",
    "own-globals": "global COUNT\nCOUNT = 1",
    "parses": "json.dumps({'a': json.loads('[1]')}); csv.reader(['a,b']);"
    "ElementTree.fromstring('<a/>'); locale.setlocale(locale.LC_ALL)",
    "own-class-registered": "from collections.abc import Sequence\n"
    "Sequence.register(type('Own', (), {'__module__': __name__}))",
    "attributes-of-own-objects": "json.JSONEncoder().item_separator = ','\n"
    "import configparser\nconfigparser.ConfigParser().optionxform = str",
    "default-types-of-files": "import mimetypes\nmimetypes.guess_type('a.html')",
    "pickles": "import pickle, copy\npickle.loads(pickle.dumps(copy.deepcopy([1])))",
    "dates": "import datetime\ndatetime.datetime.strptime('2020', '%Y').strftime('%c')",
    "loggers-of-others": "logging.getLogger('urllib3').disabled = True\n"
    "logging.captureWarnings(True)",
    "debugging": "import faulthandler, tracemalloc\nfaulthandler.enable()\ntracemalloc.start()\n"
    "gc.collect(); socket.socketpair()[0].settimeout(3)",
    "default-policy": "asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())",
    "warnings-of-one-kind": "warnings.filterwarnings('ignore', message='x')",
    "template": "import jinja2\njinja2.Template('{{ x }}').render(x=1)",
}

#: Statements at the top of a handler's module, what they set that can be taken back, and what they
#: change everywhere.
AT_IMPORT = {
    "ssl": (
        "import ssl\nssl._create_default_https_context = ssl._create_unverified_context",
        [],
        ["ssl._create_default_https_context"],
    ),
    "late-patch": ("from wave import Wave_read\nimport wave\nwave.open = print", [], ["wave.open"]),
    "signal": ("import signal\nsignal.signal(signal.SIGUSR1, print)", [], ["signal.signal"]),
    "limit": ("import csv, sys\ncsv.field_size_limit(sys.maxsize)", [], ["csv.field_size_limit"]),
    "method": (
        "import json\njson.JSONEncoder.default = lambda self, it: str(it)",
        [],
        ["json.encoder.JSONEncoder.default"],
    ),
    "attribute": (
        "import json\njson.JSONEncoder.item_separator = ','",
        [],
        ["json.encoder.JSONEncoder.item_separator"],
    ),
    "checks": (
        "import jsonschema\njsonschema.FormatChecker.cls_checks('even')(lambda value: True)",
        [],
        ["jsonschema._format.FormatChecker.checkers"],
    ),
    "console": ("import rich\nrich.reconfigure(width=30)", [], ["rich.reconfigure"]),
    "packages-in-its-folder": (
        "import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/vendor')\nimport given",
        [],
        ["sys.modules"],
    ),
    "error": ("import warnings\nwarnings.simplefilter('error')", [], ["warnings.filterwarnings"]),
    "environ": ("import os\nos.environ['REGION'] = 'x'", ["os.environ['REGION']"], []),
    "environ-in-a-module": ("import sets", ["os.environ['REGION']"], []),
    "chdir": ("import os\nos.chdir(os.path.dirname(__file__))", ["os.chdir"], []),
    "time-zone": (
        "import os, time\nos.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()",
        ["os.environ['TZ']"],
        ["time.tzset"],
    ),
    "umask": ("import os\nos.umask(0o77)", ["os.umask"], []),
    "stdout": ("import io, sys\nsys.stdout = io.StringIO()", [], ["sys.stdout"]),
    "locale": (
        "import locale\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8')",
        ["locale.setlocale"],
        [],
    ),
    "context": (
        "import decimal\ndecimal.DefaultContext.prec = 5",
        [],
        ["decimal.DefaultContext.prec"],
    ),
    "gc": ("import gc\ngc.disable()", ["gc.disable"], []),
    "path": ("import sys\nsys.path.append('/opt/more')", ["sys.path"], []),
    "timeout": ("import socket\nsocket.setdefaulttimeout(5)", ["socket.setdefaulttimeout"], []),
    "recursion": ("import sys\nsys.setrecursionlimit(9000)", ["sys.setrecursionlimit"], []),
    "logging": ("import logging\nlogging.disable()", ["logging.disable"], []),
    "seed": ("import random, numpy\nrandom.seed(1)\nnumpy.random.seed(1)", [], []),
    "libraries": ("import numpy, matplotlib.pyplot, sqlite3", [], []),
    "logging-config": (
        "import logging.config\nlogging.config.dictConfig({'version': 1})",
        ["logging.config"],
        [],
    ),
    "start-method": (
        "import multiprocessing\nmultiprocessing.set_start_method('spawn')",
        ["multiprocessing.set_start_method"],
        [],
    ),
    "main-module": ("import __main__\n__main__.Own = dict", [], ["__main__", "__main__.Own"]),
    "names-of-levels": (
        "import logging\nlogging.addLevelName(25, 'NOTICE')",
        ["logging.addLevelName"],
        [],
    ),
    "read-by-a-library": (
        "import os\nos.environ['NETWORKX_FALLBACK_TO_NX'] = '1'\nimport networkx",
        ["os.environ['NETWORKX_FALLBACK_TO_NX']"],
        ["networkx by os.environ['NETWORKX_FALLBACK_TO_NX']"],
    ),
    "names-of-classes": (
        "from pydantic.v1 import BaseModel, validator\n"
        "class Order(BaseModel):\n"
        "    price: int\n"
        "    @validator('price')\n"
        "    def check(cls, value): return value",
        [],
        ["pydantic.v1.class_validators._FUNCS"],
    ),
    "c-at-import": (
        "import ctypes\nSEED = ctypes.CDLL(None).srand",
        [],
        ["ctypes.srand"],
    ),
    "metric": (
        "from prometheus_client import Counter\nCounter('orders', 'all')",
        [],
        ["prometheus_client.REGISTRY"],
    ),
    "basic-config": (
        "import logging\nlogging.basicConfig(level=logging.INFO)\n"
        "logging.getLogger().setLevel(logging.DEBUG)",
        [],
        [],
    ),
    "warnings": ("import warnings\nwarnings.filterwarnings('ignore')", [], []),
    "threads-of-blas": ("import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport numpy", [], []),
    "log-level": ("import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'", [], []),
    "own-folder": ("import os, sys\nsys.path.insert(0, os.path.dirname(__file__))", [], []),
    "own-module": ("import util", [], []),
}

_MODULES = (
    "asyncio contextlib csv decimal gc io json locale logging numpy os random resource socket sys "
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


#: Name -> code, and what it changes in runs, at its import, and everywhere.
ROWS = {
    "in runs": {name: (body, [found, [], []]) for name, (body, found) in IN_RUNS.items()},
    "harmless": {name: (body, [[], [], []]) for name, body in HARMLESS.items()},
    "at its import": {name: (code, [[], *found]) for name, (code, *found) in AT_IMPORT.items()},
}
#: What changes how the code after it runs.
ALONE = {
    "environ-patched",
    "read-by-a-library",
    "figure",
    "warnings-error",
    "error",
    "builtin-replaced",
    "settrace",
    "mock-patch",
    "main-module-by-its-dictionary",
    "module-by-its-dictionary",
}
#: Rows of one function: of more, its snapshots take longer than those of two functions.
MOST = 12


def together(rows):
    """Groups of rows that change different things: their code is one function."""
    groups = []
    for name, (code, found) in rows.items():
        changed = {each for kind in found for each in kind}
        for names, of_group in groups:
            if len(names) < MOST and not changed & of_group and not {name, *names} & ALONE:
                break
        else:
            groups.append((names := {}, of_group := set()))
        names[name] = code
        of_group |= changed
    return [names for names, _ in groups]


@pytest.mark.parametrize("kind", ROWS)
def test_what_a_function_changes_is_found_and_what_concerns_no_other_is_not(kind, tmp_path):
    rows, folders, expected = ROWS[kind], {}, {}
    for number, names in enumerate(together(rows)):
        code = "\n".join(names.values())
        whole = f"{code}\ndef handle(req): return req\n" if "import" in kind else _handler(code)
        folders[f"f{number}"] = {"handler.py": whole, **_FILES}
        found = zip(*(rows[name][1] for name in names), strict=True)
        expected[f"f{number}"] = ([sorted(chain(*each)) for each in found], list(names))
    told = changes_of(folders, tmp_path)
    differs = {
        name: (told[name], *known)
        for name, known in expected.items()
        if not isinstance(told[name], list) or [*map(sorted, told[name])] != known[0]
    }
    assert not differs


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


@pytest.mark.parametrize("processes", [[[0], [1]], [[], [0], [1]]])
def test_how_processes_start_is_each_functions_own_choice(processes, start, wrap_image):
    chooses = """
        import multiprocessing
        multiprocessing.set_start_method("{}")
        def handle(req):
            return multiprocessing.get_start_method()
    """
    handlers = {how: chooses.replace("{}", how) for how in ("spawn", "fork")}
    server = start(wrap_image(handlers, processes, entry={"output": [0, 1]}))
    assert [server.request().json for _ in range(2)] == [["spawn", "fork"]] * 2


@pytest.mark.parametrize("processes", [[[0], [1]], [[], [0], [1]]])
def test_the_logging_of_a_function_silences_no_other(processes, start, wrap_image, eventually):
    warns = """
        import logging
        LOGGERS = [logging.getLogger(name) for name in (__name__, "orders")]
        def handle(req):
            for each in LOGGERS:
                each.warning("careful")
            return "1"
    """
    configures = """
        import logging.config
        logging.config.dictConfig({"version": 1})
        def handle(req):
            return "1"
    """
    handlers = {"warns": warns, "configures": configures}
    server = start(wrap_image(handlers, processes, entry={"output": [0, 1]}))
    assert server.request().status == 200
    assert eventually(lambda: server.log.read_text() == "[warns] careful\n" * 2)


@pytest.mark.parametrize("processes", [[[0], [1]], [[], [0], [1]]])
def test_no_process_has_the_warning_filters_of_another_function(processes, start, wrap_image):
    counts = """
        import warnings
        def handle(req):
            with warnings.catch_warnings(record=True) as found:
                warnings.warn("careful")
            return len(found) and str(len(found)) or "none"
    """
    ignores = f"import warnings\nwarnings.filterwarnings('ignore')\n{dedent(counts)}"
    handlers = {"ignores": ignores, "counts": counts}
    server = start(wrap_image(handlers, processes, entry={"output": [0, 1]}))
    assert [server.request().json for _ in range(2)] == [["none", 1]] * 2


@pytest.mark.parametrize("processes", [[[0, 1]], [[], [0, 1]]])
def test_no_function_gets_the_event_loop_that_another_has_set(processes, start, wrap_image):
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
    image = wrap_image(handlers, processes, inputs=inputs, entry={"output": 1})
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
    }
    lib = tmp_path / "lib"
    for name, text in {
        "sqlalchemy/__init__.py": "",
        "sqlalchemy/event.py": "def listen(target, name, call): pass\n",
        "duckdb.py": "def sql(query): pass\ndef connect(database=':memory:'): pass\n"
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
