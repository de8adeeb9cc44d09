"""Behaviours of what a handler is made of: names, modules, files of its folder, reflection."""

from __future__ import annotations

from behaviour import Family, asked

_HANDLER = """
from __future__ import annotations

import abc, ast, asyncio, builtins, collections, contextlib, contextvars, copy, dataclasses, decimal
import doctest, enum, functools, gc, glob, importlib, importlib.metadata, importlib.resources
import importlib.util, inspect, io, json, linecache, logging, logging.config, os, pathlib, pickle
import pkgutil, pprint, pydoc, runpy, shutil, sqlite3, string, subprocess, sys, tempfile, threading
import traceback, types, typing, unittest.mock, warnings, weakref
from concurrent.futures import ThreadPoolExecutor

import function
import function.model
from function import model, pack
from function.pack import inner
from . import model as relative
from .pack.sub import deep
from .first import FIRST
from function import once
from function.once import LOADS
from . import once as once_again
import function.once_more
from function import once_more

HERE = pathlib.Path(__file__).parent

class Color(enum.Enum):
    RED = 1

class Pair(typing.NamedTuple):
    left: int
    right: Scaler

@dataclasses.dataclass(frozen=True)
class Own:
    x: int
    inner: typing.ClassVar[model.Scaler] = None

class Typed(typing.TypedDict):
    scaler: model.Scaler

class Base(abc.ABC):
    @abc.abstractmethod
    def run(self): ...

class Plugin(Base):
    found = []
    def __init_subclass__(cls):
        Plugin.found.append(cls.__module__)
    def run(self):
        return super().__init__()

class Second(Plugin):
    pass

@functools.lru_cache
def cached(x):
    return x

@functools.singledispatch
def shown(x):
    return "any"

@shown.register
def _(x: int):
    return "int"

def square(x):
    return x * x

def imported_late():
    from function import late
    import function.late as again
    return [late.NAME, again.NAME, late is again]

def star():
    names = {}
    exec("from function.pack.stars import *", names)
    return sorted(name for name in names if name != "__builtins__")

def in_thread(run):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()

def warned():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("careful")
    return [found[0].category.__name__, pathlib.Path(found[0].filename).name]

def logged(name):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    logger.error("broken")
    logger.removeHandler(handler)
    return [(each.name, each.module, each.funcName) for each in records]

def raised():
    try:
        model.fail()
    except ValueError:
        lines = traceback.format_exc().split("\\n")
    return [line.rsplit("/")[-1] for line in lines]

def patched():
    with unittest.mock.patch("function.model.NAME", "patched"):
        return [model.NAME, model.name()]

def patched_object():
    with unittest.mock.patch.object(sys.modules["function.model"], "NAME", "patched"):
        return [model.NAME, model.name()]

def sqlite():
    with contextlib.closing(sqlite3.connect("function/tables.db")) as db:
        db.execute("create table if not exists t (x)")
        return pathlib.Path("function/tables.db").exists()

def written():
    with open("function/written.txt", "w") as file:
        file.write("content")
    return (HERE / "written.txt").read_text()

def unpickled(*calls):
    return [pickle.loads(pickle.dumps(call)) for call in calls]

def absent(load):
    try:
        load()
    except ModuleNotFoundError as error:
        return [error.name, str(error)]

def handle(req):
    return json.dumps(eval(req), default=repr)
"""
_FILES = {
    "__init__.py": "PACKAGED = 'packaged'\n",
    "model.py": (
        "NAME = 'model'\n\n\ndef name():\n    return NAME\n\n\n"
        "def fail():\n    raise ValueError('of model')\n\n\n"
        'class Scaler:\n    """Scales.\n\n    >>> Scaler().scale(2)\n    4\n    """\n\n'
        "    def scale(self, x):\n        return 2 * x\n"
    ),
    "late.py": "NAME = 'late'\n",
    "first.py": "from function import second\nFIRST = 'first'\n",
    "second.py": "from function import first\nSECOND = 'second'\n",
    "once.py": "import sys\nLOADS = sys.once = getattr(sys, 'once', 0) + 1\n",
    "once_more.py": "import sys\nLOADS = sys.more = getattr(sys, 'more', 0) + 1\n",
    "later.py": "import sys\nLOADS = sys.later = getattr(sys, 'later', 0) + 1\n",
    "script.py": "import json\nRESULT = (__name__, json.dumps([1]))\n",
    "data.txt": "data",
    "table.csv": "1,2\n3,4\n",
    "settings.ini": "[main]\nname = value\n",
    "pack/__init__.py": (
        "from .inner import INNER\n\n\ndef __getattr__(name):\n"
        "    if name == 'lazy':\n        return 'lazily'\n    raise AttributeError(name)\n"
    ),
    "pack/inner.py": "from .. import model\nINNER = model.NAME\n",
    "pack/stars.py": "__all__ = ['shown']\nshown = 1\nhidden = 2\n",
    "pack/sub/__init__.py": "",
    "pack/sub/deep.py": "from ...model import NAME\nfrom .. import inner\nDEEP = inner.INNER\n",
    "spaced/one.py": "ONE = 1\n",
    "pack/data.json": '{"a": 1}',
}

NAMES = Family(
    "flask",
    _HANDLER,
    asked("""
        __name__
        __package__
        __spec__.name
        __doc__
        pathlib.Path(__file__).name
        handle.__module__
        handle.__qualname__
        handle.__globals__ is globals()
        Own.__module__
        Color.__module__
        repr(Own(1))
        str(Own)
        Plugin.found
        globals() is vars(sys.modules[__name__])
        sys.modules[__name__].Own is Own
        sys.modules['function.model'].NAME
        sys.modules['function.model'] is model
        sys.modules['function'].PACKAGED
        sys.modules['function.model'].__name__
        inspect.ismodule(sys.modules['function.model'])
        isinstance(sys.modules['function.model'], types.ModuleType)
        type(model) is types.ModuleType
        'function.absent' in sys.modules
        function.model is model
        function.__name__
        function.PACKAGED
        len(function.__path__)
        relative is model
        pack.inner is inner
        pack.lazy
        inner.INNER
        deep.DEEP
        deep.__name__
        deep.__package__
        FIRST
        function.second.SECOND
        imported_late()
        in_thread(imported_late)
        asyncio.run(asyncio.to_thread(imported_late))
        star()
        [once.LOADS, LOADS, once_again.LOADS, once_more.LOADS, sys.once, sys.more]
        [__import__('function.later').later.LOADS, importlib.import_module('function.later').LOADS]
        [pickle.loads(b'cfunction.later\\nLOADS\\n.'), sys.later]
        importlib.import_module('function.model') is model
        importlib.import_module('function.pack.inner').INNER
        importlib.import_module('.model', 'function') is model
        importlib.import_module('.inner', 'function.pack').INNER
        importlib.reload(model).NAME
        importlib.reload(sys.modules['function.late' if imported_late() else '']).NAME
        importlib.util.find_spec('function.model').name
        importlib.util.find_spec('function.absent')
        absent(lambda: __import__('function.absent'))
        absent(lambda: importlib.import_module('function.absent'))
        importlib.util.find_spec('.model', 'function').name
        __import__('function.model').model.NAME
        __import__('function.model', fromlist=['NAME']).NAME
        __import__('function', globals(), locals(), ['model'], 0).model.NAME
        __import__('model', globals(), locals(), ['NAME'], 1).NAME
        [exec('import function.model as m', names := {}), names['m'].NAME][1]
        [exec('from .model import NAME', names := dict(__package__='function')), names['NAME']][1]
        eval('model.NAME')
        (lambda: __import__('function.pack.inner').pack.INNER)()
        __import__('function.spaced.one').spaced.one.ONE
        importlib.import_module('function.spaced').__file__
        importlib.metadata.version('flask') > '3'
        runpy.run_path(str(HERE / 'script.py'))['RESULT']
        runpy.run_module('function.script')['RESULT']
        sorted(each.name for each in pkgutil.iter_modules(function.__path__))
        sorted(each.name for each in pkgutil.walk_packages(pack.__path__, 'function.pack.'))
        pkgutil.resolve_name('function.model:Scaler') is model.Scaler
        pkgutil.get_data('function', 'data.txt').decode()
        importlib.resources.files('function').joinpath('data.txt').read_text()
        importlib.resources.files(function).joinpath('data.txt').read_text()
        importlib.resources.files('function.pack').joinpath('data.json').read_text()
        sorted(path.name for path in importlib.resources.files('function.pack').iterdir())[-1]
        importlib.resources.read_text('function', 'data.txt')
        importlib.resources.as_file(importlib.resources.files('function') / 'data.txt') is not None
        __loader__ is not None
        __spec__.loader.get_source(__spec__.name).startswith('\\nfrom __future__')
        inspect.getsource(square)
        inspect.getsource(model.Scaler).startswith('class Scaler')
        inspect.getsource(model).startswith('NAME')
        inspect.getsourcelines(square)[1]
        inspect.getmodule(Own).__name__
        inspect.getmodule(model.Scaler) is model
        inspect.getmodule(inspect.currentframe()).__name__
        pathlib.Path(inspect.getfile(model.Scaler)).name
        pathlib.Path(inspect.stack()[1].filename).name
        inspect.stack()[1].function
        str(inspect.signature(square))
        typing.get_type_hints(Own)['inner'] == typing.ClassVar[model.Scaler]
        typing.get_type_hints(Typed)['scaler'] is model.Scaler
        dataclasses.asdict(Own(1))
        dataclasses.replace(Own(1), x=2).x
        dataclasses.make_dataclass('Made', ['y'])(3)
        dataclasses.make_dataclass('Made', ['y']).__module__
        collections.namedtuple('Named', 'a')(1)
        collections.namedtuple('Named', 'a').__module__
        enum.Enum('Made', 'A').__module__
        typing.NewType('New', int).__module__
        type('Made', (), {}).__module__
        unpickled(Color.RED)[0] is Color.RED
        unpickled(Own(2))[0].x
        unpickled(square)[0](3)
        unpickled(Pair(1, 2))[0].left
        unpickled(model.Scaler())[0].scale(2)
        unpickled(function.pack.inner.model.Scaler)[0] is model.Scaler
        unpickled(functools.partial(square, 3))[0]()
        pickle.dumps(Own).count(b'function.handler')
        pickle.loads(b'cfunction.model\\nScaler\\n(tR.').scale(4)
        copy.deepcopy(Own(3)).x
        [cached(1), cached(1), cached.cache_info().misses > 0][2]
        shown(1)
        Second().run()
        warned()
        logged(__name__)
        logged('function.other')
        logged('mine')
        logging.getLogger(__name__).name
        logging.getLogger(__name__) is logging.getLogger('function.handler')
        logging.getLogger('function').getChild('handler') is logging.getLogger(__name__)
        raised()
        patched()
        patched_object()
        model.NAME
        pydoc.render_doc(model.Scaler, renderer=pydoc.plaintext).split('\\n')[0]
        pydoc.locate('function.model.NAME')
        doctest.testmod(sys.modules['function.model']).failed
        doctest.testmod(model).attempted
        linecache.getline(__file__, 2)
        ast.parse(open(__file__).read()).body[0].module
        logging.config.dictConfig({'version': 1, 'disable_existing_loggers': False})
        string.Template('$a').substitute(a=1)
        pprint.pformat(Own(1))
        sys.modules['__main__'].__name__
        weakref.proxy(model).NAME
        weakref.ref(Own)().__name__
        getattr(function, 'model').NAME
        hasattr(function, 'absent')
        vars(function)['PACKAGED']
        dir(model)[-2:]
        types.FunctionType(square.__code__, {'__builtins__': {}})(3)
    """),
    _FILES,
)
FILES = Family(
    "flask",
    _HANDLER,
    asked("""
        open('function/data.txt').read()
        open(b'function/data.txt').read()
        open('./function/data.txt').read()
        open(pathlib.Path('function') / 'data.txt').read()
        open(os.path.join(os.getcwd(), 'function', 'data.txt')).read()
        open(HERE / 'data.txt').read()
        io.open('function/data.txt').read()
        builtins.open('function/data.txt').read()
        os.fdopen(os.open('function/data.txt', os.O_RDONLY)).read()
        pathlib.Path('function/data.txt').read_text()
        pathlib.Path('function/data.txt').exists()
        pathlib.Path('function', 'data.txt').resolve() == HERE / 'data.txt'
        os.path.exists('function/data.txt')
        os.path.getsize('function/data.txt')
        os.path.abspath('function/data.txt') == str(HERE / 'data.txt')
        'data.txt' in os.listdir('function')
        sorted(glob.glob('function/*.txt'))
        sorted(os.path.basename(name) for name in glob.glob(str(HERE / '*.csv')))
        HERE.name
        HERE == pathlib.Path('function').resolve()
        [os.path.basename(root) for root, _, _ in os.walk('function') if root.endswith('pack')]
        shutil.copy('function/data.txt', tempfile.mkdtemp()) != ''
        subprocess.run(['cat', 'function/data.txt'], capture_output=True).stdout.decode()
        subprocess.run([sys.executable, '-c', 'from function.model import NAME; print(NAME)'], capture_output=True).stdout.decode()
        subprocess.run([sys.executable, '-m', 'function.script'], capture_output=True).returncode
        subprocess.run([sys.executable, str(HERE / 'script.py')], capture_output=True).returncode
        __import__('configparser').ConfigParser().read('function/settings.ini')
        __import__('numpy').loadtxt('function/table.csv', delimiter=',').tolist()
        __import__('csv').DictReader(open('function/table.csv')).fieldnames
        __import__('fileinput').input('function/data.txt').readline()
        linecache.getline('function/data.txt', 1)
        sqlite()
        written()
        open('written-here.txt', 'w').write('here')
        pathlib.Path('written-here-too.txt').write_text('here')
        os.path.basename(sys.argv[0])
        len(sys.argv)
        os.getcwd() in (sys.path[0], os.path.dirname(sys.modules['__main__'].__file__))
        os.path.samefile(os.getcwd(), os.path.dirname(os.path.abspath(sys.modules['__main__'].__file__)))
    """),  # noqa: E501
    _FILES,
)

_PLAIN = """
import importlib, json, logging, os, pickle, sys, typing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import model, pack
from pack.inner import NAME
from function import late

def absent():
    try:
        import pack.absent
    except ModuleNotFoundError as error:
        return str(error)

def handle(req):
    return json.dumps(eval(req), default=repr)
"""
#: Names of modules that a function finds in its folder by ``sys.path``.
PLAIN_NAMES = Family(
    "flask",
    _PLAIN,
    asked("""
        [__name__, late.__name__]
        [model.__name__, model.__package__, model.Scaler.__module__, model.LOGGER.name]
        [pack.__name__, pack.__package__, pack.inner.__name__, pack.inner.__package__, NAME]
        repr(model.Scaler)
        pickle.dumps(model.Scaler, 0).decode()
        pickle.loads(pickle.dumps(model.Scaler(3))).factor
        str(typing.get_type_hints(model.Scaler))
        sys.modules['model'].Scaler is model.Scaler
        importlib.import_module('pack.inner').NAME
        importlib.import_module('.inner', 'pack').__name__
        absent()
    """),
    {
        "model.py": "import dataclasses, logging\nLOGGER = logging.getLogger(__name__)\n"
        "@dataclasses.dataclass\nclass Scaler:\n    factor: int\n",
        "pack/__init__.py": "from . import inner\n",
        "pack/inner.py": "NAME = 'inner'\n",
        "late.py": "",
    },
)
