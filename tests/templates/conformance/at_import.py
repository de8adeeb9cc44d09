"""Behaviours of what a module opens, starts or sets while it is imported."""

from __future__ import annotations

from behaviour import Behaviour, Family, Request, asked, one

_ANSWER = "\n\ndef handle(req):\n    return json.dumps(eval(req), default=repr)\n"


def _family(code: str, expressions: str = "", **behaviours: Behaviour) -> Family:
    imports = (
        "import asyncio, atexit, concurrent.futures as cf, contextvars, decimal, fcntl, functools\n"
        "import gc, http.client, io, json, locale, logging, logging.handlers, mmap\n"
        "import multiprocessing, os, pathlib, queue, random, select, signal, socket, sqlite3\n"
        "import subprocess, sys, tempfile, threading, time, urllib.request, uuid, warnings\n"
        "URL = os.environ['CONFORMANCE_URL']\n"
    )
    return Family("flask", imports + code + _ANSWER, asked(expressions) | behaviours)


def _each(expression: str, *, at_once: bool = True) -> Behaviour:
    """Eight requests with a number each."""
    return Behaviour(tuple(Request(expression.format(n)) for n in range(8)), at_once=at_once)


def _same(expression: str, times: int = 3) -> Behaviour:
    return one(*(Request(expression),) * times)


AT_IMPORT = {
    "session": _family(
        "import requests\nSESSION = requests.Session()\nSESSION.get(URL + '/item/hello')\n",
        in_turn=_each("SESSION.get(URL + '/item/{}', timeout=30).text", at_once=False),
        at_once=_each("SESSION.get(URL + '/item/{}', timeout=30).text"),
    ),
    "urllib3": _family(
        "import urllib3\nPOOL = urllib3.PoolManager()\nPOOL.request('GET', URL + '/item/hello')\n",
        at_once=_each("POOL.request('GET', URL + '/item/{}', timeout=30, retries=0).data.decode()"),
    ),
    "connection": _family(
        "LOCK = threading.Lock()\nCONNECTION = http.client.HTTPConnection(URL[7:], timeout=30)\n"
        "def get(n):\n    with LOCK:\n        CONNECTION.request('GET', f'/item/{n}')\n"
        "        return CONNECTION.getresponse().read().decode()\nget('hello')\n",
        at_once=_each("get({})"),
    ),
    "idle connection": _family(  # opened, with nothing sent yet
        "LOCK = threading.Lock()\nCONNECTION = http.client.HTTPConnection(URL[7:], timeout=30)\n"
        "CONNECTION.connect()\n"
        "def get(n):\n    with LOCK:\n        CONNECTION.request('GET', f'/item/{n}')\n"
        "        return CONNECTION.getresponse().read().decode()\n",
        at_once=_each("get({})"),
    ),
    "socket": _family(
        "HOST, PORT = URL[7:].split(':')\nSOCKET = socket.create_connection((HOST, int(PORT)))\n"
        "LOCK = threading.Lock()\n"
        "def get(n):\n"
        "    with LOCK:\n"
        "        SOCKET.sendall(f'GET /item/{n} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'.encode())\n"
        "        answer = http.client.HTTPResponse(SOCKET)\n"
        "        answer.begin()\n"
        "        return answer.read().decode()\n",
        at_once=_each("get({})"),
    ),
    "asyncio loop": _family(
        "LOOP = asyncio.new_event_loop()\n"
        "LOCK = threading.Lock()\n"
        "def run(n):\n"
        "    with LOCK:\n"
        "        return LOOP.run_until_complete(asyncio.sleep(0.001, n))\n",
        in_turn=_each("run({})", at_once=False),
        at_once=_each("run({})"),
    ),
    "asyncio thread": _family(
        "LOOP = asyncio.new_event_loop()\n"
        "threading.Thread(target=LOOP.run_forever, daemon=True).start()\n"
        "def run(n):\n"
        "    return asyncio.run_coroutine_threadsafe(asyncio.sleep(0, n), LOOP).result(30)\n",
        at_once=_each("run({})"),
    ),
    "executor": _family(
        "POOL = cf.ThreadPoolExecutor(4)\nlist(POOL.map(str, range(4)))\n",
        in_turn=_each("POOL.submit(str, {}).result(30)", at_once=False),
        at_once=_each("POOL.submit(str, {}).result(30)"),
    ),
    "idle executor": _family(
        "POOL = cf.ThreadPoolExecutor(4)\n", at_once=_each("POOL.submit(str, {}).result(30)")
    ),
    "process executor": _family(
        "def square(x):\n    return x * x\nPOOL = cf.ProcessPoolExecutor(2)\n",
        in_turn=_each("POOL.submit(square, {}).result(30)", at_once=False),
    ),
    "worker thread": _family(
        "WORK = queue.Queue()\n"
        "def work():\n"
        "    while True:\n"
        "        found, n = WORK.get()\n"
        "        found.put(n * n)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "def ask(n):\n"
        "    found = queue.Queue()\n"
        "    WORK.put((found, n))\n"
        "    return found.get(timeout=30)\n",
        at_once=_each("ask({})"),
    ),
    "refreshing thread": _family(
        "COUNT = [0]\nGOES_ON = threading.Event()\n"
        "def refresh():\n"
        "    while True:\n"
        "        COUNT[0] += 1\n"
        "        GOES_ON.set()\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=refresh, daemon=True).start()\n"
        "def refreshed():\n"
        "    before, end = COUNT[0], time.monotonic() + 30\n"
        "    while COUNT[0] == before and time.monotonic() < end:\n"
        "        time.sleep(0.001)\n"
        "    return COUNT[0] > before\n",
        in_turn=_same("refreshed()"),
    ),
    "lock held by a thread": _family(
        "LOCK, HELD, FREE = threading.Lock(), threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with LOCK:\n"
        "        HELD.set()\n"
        "        FREE.wait(1)\n"
        "threading.Thread(target=hold, daemon=True).start()\nHELD.wait()\n",
        in_turn=_same("[FREE.set(), LOCK.acquire(timeout=30), LOCK.release()][1]"),
    ),
    "timer": _family(
        "RANG = threading.Event()\nthreading.Timer(0.5, RANG.set).start()\n",
        in_turn=_same("RANG.wait(30)"),
    ),
    "queue listener": _family(
        "WORK, FOUND = queue.Queue(), []\n"
        "HEARD = threading.Event()\n"
        "class MemoryBudget(logging.Handler):\n"
        "    def emit(self, record):\n"
        "        FOUND.append(record.getMessage())\n"
        "        HEARD.set()\n"
        "logging.handlers.QueueListener(WORK, MemoryBudget()).start()\n"
        "LOGGER = logging.getLogger('queued')\n"
        "LOGGER.addHandler(logging.handlers.QueueHandler(WORK))\n"
        "def log(text):\n"
        "    HEARD.clear()\n"
        "    LOGGER.error(text)\n"
        "    return HEARD.wait(30) and FOUND[-1]\n",
        in_turn=_each("log('text {}')", at_once=False),
    ),
    "coprocess": _family(
        "CAT = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "LOCK = threading.Lock()\n"
        "def ask(n):\n"
        "    with LOCK:\n"
        "        CAT.stdin.write(b'%d\\n' % n)\n"
        "        CAT.stdin.flush()\n"
        "        return CAT.stdout.readline().decode()\n",
        at_once=_each("ask({})"),
        alive=_same("[CAT.poll(), os.waitpid(CAT.pid, os.WNOHANG)[0]]"),
    ),
    "sqlite file": _family(
        "PATH = os.path.join(tempfile.mkdtemp(), 'own.db')\n"
        "DB = sqlite3.connect(PATH, check_same_thread=False)\nLOCK = threading.Lock()\n"
        "DB.execute('create table t (x)')\nDB.commit()\n"
        "def add(x):\n"
        "    with LOCK, DB:\n"
        "        DB.execute('insert into t values (?)', (x,))\n"
        "        return x\n"
        "def count():\n"
        "    with LOCK:\n"
        "        return DB.execute('select count(*) from t').fetchone()[0]\n",
        at_once=_each("add({})"),
        counted=Behaviour(tuple(Request(text) for text in ("add(1)", "count() >= 1"))),
    ),
    "sqlite memory": _family(
        "DB = sqlite3.connect(':memory:', check_same_thread=False)\nLOCK = threading.Lock()\n"
        "DB.execute('create table t (x)')\nDB.execute('insert into t values (5)')\nDB.commit()\n"
        "def rows():\n"
        "    with LOCK:\n"
        "        return DB.execute('select x from t').fetchall()\n",
        at_once=_each("rows() and {}"),
    ),
    "file offset": _family(
        "PATH = os.path.join(tempfile.mkdtemp(), 'lines')\n"
        "pathlib.Path(PATH).write_text('0123456789' * 20)\nFILE = open(PATH, 'rb', buffering=0)\n"
        "LOCK = threading.Lock()\n"
        "def read(at):\n"
        "    with LOCK:\n"
        "        FILE.seek(at)\n"
        "        time.sleep(0.002)\n"
        "        return FILE.read(3).decode()\n",
        at_once=Behaviour(
            tuple(Request(f"[read({n}) for _ in range(20)]") for n in range(8)), True
        ),
    ),
    "descriptor": _family(
        "READER, WRITER = os.pipe()\nLOCK = threading.Lock()\n"
        "def through(n):\n"
        "    with LOCK:\n"
        "        os.write(WRITER, b'%d\\n' % n)\n"
        "        time.sleep(0.002)\n"
        "        return os.read(READER, 100).decode()\n",
        at_once=Behaviour(
            tuple(Request(f"[through({n}) for _ in range(20)]") for n in range(8)), True
        ),
    ),
    "socket pair": _family(
        "LEFT, RIGHT = socket.socketpair()\nLOCK = threading.Lock()\n"
        "def through(n):\n"
        "    with LOCK:\n"
        "        LEFT.sendall(b'%d\\n' % n)\n"
        "        time.sleep(0.002)\n"
        "        return RIGHT.recv(100).decode()\n",
        at_once=Behaviour(
            tuple(Request(f"[through({n}) for _ in range(20)]") for n in range(8)), True
        ),
    ),
    "epoll": _family(
        "EPOLL = select.epoll()\nLOCK = threading.Lock()\n"
        "def ready(n):\n"
        "    with LOCK:\n"
        "        left, right = socket.socketpair()\n"
        "        with left, right:\n"
        "            EPOLL.register(left.fileno(), select.EPOLLIN)\n"
        "            right.send(b'x')\n"
        "            time.sleep(0.002)\n"
        "            found = EPOLL.poll(30)\n"
        "            EPOLL.unregister(left.fileno())\n"
        "            return len(found)\n",
        at_once=Behaviour(
            tuple(Request(f"[ready({n}) for _ in range(20)]") for n in range(8)), True
        ),
    ),
    "shared memory": _family(
        "PAGES = mmap.mmap(-1, 4096)\nLOCK = threading.Lock()\n"
        "def kept(n):\n"
        "    with LOCK:\n"
        "        PAGES[:4] = b'%04d' % n\n"
        "        time.sleep(0.002)\n"
        "        return int(PAGES[:4])\n",
        at_once=Behaviour(
            tuple(Request(f"[kept({n}) for _ in range(20)]") for n in range(8)), True
        ),
    ),
    "file lock": _family(
        "FILE = open(os.path.join(tempfile.mkdtemp(), 'lock'), 'w')\nLOCK = threading.Lock()\n"
        "INSIDE = os.path.join(tempfile.mkdtemp(), 'inside')\n"
        "def alone():\n"
        "    with LOCK:\n"
        "        fcntl.flock(FILE, fcntl.LOCK_EX)\n"
        "        try:\n"
        "            os.close(os.open(INSIDE, os.O_CREAT | os.O_EXCL))\n"
        "            time.sleep(0.002)\n"
        "            os.unlink(INSIDE)\n"
        "            return True\n"
        "        except FileExistsError:\n"
        "            return False\n"
        "        finally:\n"
        "            fcntl.flock(FILE, fcntl.LOCK_UN)\n",
        at_once=Behaviour(
            tuple(Request(f"[alone() for _ in range(20)][{n}]") for n in range(8)), True
        ),
    ),
    "temporary folder": _family(
        "FOLDER = tempfile.TemporaryDirectory()\nFILE = tempfile.NamedTemporaryFile()\n",
        in_turn=_same("[os.path.isdir(FOLDER.name), os.path.exists(FILE.name)]", 4),
    ),
    "at exit": _family(
        "FOLDER = tempfile.mkdtemp()\natexit.register(os.rmdir, FOLDER)\n",
        in_turn=_same("os.path.isdir(FOLDER)", 4),
    ),
    "process id": _family(
        "PID, STARTED = os.getpid(), time.monotonic()\nINSTANCE = uuid.uuid4().hex\n",
        "STARTED <= time.monotonic()",
        own=_same("PID == os.getpid()"),
        instance=Behaviour((Request("INSTANCE"),) * 3, varies=True),
    ),
    "signal handler": _family(
        "GOT = []\nsignal.signal(signal.SIGUSR1, lambda *_: GOT.append(1))\n"
        "def ask():\n"
        "    end = time.monotonic() + 30\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    while not GOT and time.monotonic() < end:\n"
        "        time.sleep(0.001)\n"
        "    return bool(GOT)\n",
        "ask()\ncallable(signal.getsignal(signal.SIGUSR1))",
    ),
    "alarm": _family(
        "RANG = []\nsignal.signal(signal.SIGALRM, lambda *_: RANG.append(1))\n"
        "def ring():\n"
        "    end = time.monotonic() + 30\n"
        "    os.kill(os.getpid(), signal.SIGALRM)\n"
        "    while not RANG and time.monotonic() < end:\n"
        "        time.sleep(0.001)\n"
        "    return bool(RANG)\n",
        "ring()",
    ),
    "OpenMP": _family(
        "import numpy as np\nA = np.ones((300, 300))\nB = (A @ A)[0, 0]\n",
        "B\n(A @ A)[0, 0]\nround(float(np.linalg.eigvalsh(A)[-1]), 6)",
        at_once=_each("(A @ A)[0, 0] + {}"),
    ),
    "torch-like worker": _family(
        "from sklearn.ensemble import RandomForestClassifier\n"
        "MODEL = RandomForestClassifier(5, random_state=1, n_jobs=2)\n"
        "MODEL.fit([[n, n % 3] for n in range(30)], [n % 2 for n in range(30)])\n",
        at_once=_each("MODEL.predict([[{}, 1]]).tolist()"),
    ),
    "settings": _family(
        "import builtins, numpy as np\n"
        "os.environ['SET'] = 'here'\nos.environ.setdefault('PATH', 'x')\n"
        "os.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()\n"
        "sys.setrecursionlimit(5000)\nsys.path.insert(0, '/nowhere')\n"
        "socket.setdefaulttimeout(7)\nlogging.basicConfig(level=logging.DEBUG)\n"
        "logging.disable(logging.DEBUG)\nwarnings.simplefilter('error')\n"
        "decimal.DefaultContext.prec = 5\ndecimal.getcontext().prec = 6\n"
        "np.seterr(divide='raise')\nnp.set_printoptions(precision=2)\n"
        "gc.disable()\nsys.setswitchinterval(0.01)\nMASK = os.umask(0o77)\n"
        "locale.setlocale(locale.LC_ALL, 'C')\nsys.dont_write_bytecode = True\n"
        "builtins.mine = 'a builtin'\njson.mine = 'patched'\n"
        "threading.stack_size(1 << 20)\nsys.setprofile(None)\n"
        "multiprocessing.set_start_method('spawn', force=True)\n"
        "sys.excepthook = lambda *_: None\nthreading.excepthook = lambda *_: None\n"
        "class Quiet(logging.Logger): pass\nlogging.setLoggerClass(Quiet)\n"
        "def warned():\n"
        "    try:\n"
        "        warnings.warn('x')\n"
        "    except UserWarning:\n"
        "        return 'raised'\n"
        "def deep(n):\n    return n and deep(n - 1) + 1\n"
        "from function import later\n",
        """
        os.environ['SET']
        subprocess.run(['sh', '-c', 'echo $SET'], capture_output=True).stdout.decode()
        time.tzname[0]
        time.localtime(0).tm_hour
        sys.getrecursionlimit()
        deep(3000)
        sys.path[0]
        socket.getdefaulttimeout()
        logging.getLogger().level
        len(logging.getLogger().handlers)
        logging.getLogger('x').isEnabledFor(logging.DEBUG)
        warned()
        decimal.DefaultContext.prec
        decimal.getcontext().prec
        str(decimal.Decimal(1) / 3)
        np.geterr()['divide']
        np.get_printoptions()['precision']
        str(np.float64(1) / 3 * np.ones(1))
        gc.isenabled()
        sys.getswitchinterval()
        os.umask(0o77)
        locale.getlocale()
        sys.dont_write_bytecode
        mine
        later.mine_is()
        json.mine
        threading.stack_size()
        multiprocessing.get_start_method()
        sys.excepthook.__name__
        threading.excepthook.__name__
        logging.getLogger('new').__class__.__name__
        """,
    ),
    "builtins": _family(
        "import builtins, gettext, unittest.mock\n"
        "class Texts(gettext.NullTranslations):\n"
        "    def __init__(self, language):\n"
        "        super().__init__()\n"
        "        self.language = language\n"
        "    def gettext(self, message):\n"
        "        return f'{self.language}: {message}'\n"
        "Texts('en').install()\n"
        "def said(language):\n    Texts(language).install()\n    return _('hello')\n"
        "def counted():\n    builtins.COUNT = 7\n    return COUNT\n"
        "def mocked():\n"
        "    opens = unittest.mock.mock_open(read_data='mocked')\n"
        "    with unittest.mock.patch('builtins.open', opens):\n"
        "        return open('/absent').read()\n"
        "def hooked():\n"
        "    found, usual = [], __import__\n"
        "    def hook(name, *more):\n"
        "        found.append(name)\n"
        "        return usual(name, *more)\n"
        "    builtins.__import__ = hook\n"
        "    try:\n        import colorsys\n"
        "    finally:\n        builtins.__import__ = usual\n"
        "    return found\n",
        """
        said('de')
        said('fr')
        [said('de'), builtins._('x')][1]
        [said('de'), '_' in vars(builtins)][1]
        counted()
        [counted(), delattr(builtins, 'COUNT'), hasattr(builtins, 'COUNT')][2]
        mocked()
        [mocked(), len(open(__file__).read()) > 9][1]
        hooked()[:1]
        """,
    ),
    "working directory": _family(
        "FOLDER = os.path.realpath(tempfile.mkdtemp())\n"
        "pathlib.Path(FOLDER, 'own.txt').write_text('own')\nos.chdir(FOLDER)\n",
        "os.getcwd() == FOLDER\nopen('own.txt').read()",
    ),
    "replaced output": _family(
        "LINES = io.StringIO()\nUSUAL, sys.stdout = sys.stdout, LINES\n",
        "[print('to the buffer'), LINES.getvalue()][1]\nsys.stdout is LINES",
    ),
    "garbage": _family(
        "gc.freeze()\nKEPT = [object() for _ in range(100)]\nimport weakref\n"
        "class Watched: pass\nWATCHED = Watched()\nWEAK = weakref.ref(WATCHED)\n"
        "CACHE = weakref.WeakValueDictionary(one=WATCHED)\n",
        "WEAK() is WATCHED\nlen(CACHE)\ngc.get_freeze_count() > 0",
    ),
    "context": _family(
        "VAR = contextvars.ContextVar('VAR', default='default')\nVAR.set('at import')\n"
        "LOCAL = threading.local()\nLOCAL.x = 'at import'\n",
        "VAR.get()\nhasattr(LOCAL, 'x')",
    ),
    "main thread": _family(
        "NAME = threading.current_thread() is threading.main_thread()\n"
        "LOADED = list(sys.modules)\n",
        "NAME\n'__main__' in LOADED",
    ),
    "server": _family(  # of its own: a metrics endpoint, say
        "import http.server\n"
        "class Metrics(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200)\n"
        "        self.end_headers()\n"
        "        self.wfile.write(b'metrics')\n"
        "    def log_message(self, *_): pass\n"
        "SERVER = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Metrics)\n"
        "threading.Thread(target=SERVER.serve_forever, daemon=True).start()\n"
        "PORT = SERVER.server_address[1]\n",
        at_once=_each(
            "urllib.request.urlopen('http://127.0.0.1:%d/{}' % PORT, timeout=30).read().decode()"
        ),
    ),
    "manager": _family(
        "class Counts:\n"
        "    def __init__(self):\n"
        "        self.pool = multiprocessing.pool.ThreadPool(2)\n"
        "import multiprocessing.pool\nCOUNTS = Counts()\n",
        at_once=_each("COUNTS.pool.map(str, [{}])"),
    ),
}
AT_IMPORT["settings"].files["later.py"] = "def mine_is():\n    return mine\n"  # type: ignore[index]

#: Modules keep what they are given: from request to request, where their process stays.
KEPT = Family(
    "flask",
    "import functools, itertools, json, os, random, sys, threading, decimal, tempfile, pathlib\n"
    "COUNT, CALLS, CACHE = 0, [], {}\nNUMBERS = itertools.count()\n"
    "@functools.lru_cache\ndef token(_):\n    return random.random()\n"
    "class Config:\n    value = 'first'\n"
    "def counted():\n    global COUNT\n    COUNT += 1\n    return COUNT\n"
    "def configured(value):\n    before, Config.value = Config.value, value\n    return before\n"
    "def environment(value):\n"
    "    before = os.environ.get('KEPT')\n    os.environ['KEPT'] = value\n    return before\n"
    "def default(x=[]):\n    x.append(1)\n    return len(x)\n"
    "def attribute():\n    handle.calls = getattr(handle, 'calls', 0) + 1\n"
    "    return handle.calls\n"
    "def module():\n    sys.kept = getattr(sys, 'kept', 0) + 1\n    return sys.kept\n"
    "def background():\n"
    "    threading.Thread(target=CALLS.append, args=('late',)).start()\n    return len(CALLS)\n"
    "def late():\n"
    "    from function import lazily\n    lazily.COUNT += 1\n    return lazily.COUNT\n"
    "def replaced():\n    global handle\n    before = handle\n"
    "    def handle(req):\n"
    "        global handle\n        handle = before\n        return 'second'\n"
    "    return 'first'\n"
    "def handle(req):\n    return json.dumps(eval(req))\n",
    {
        name: one(*(Request(name),) * 3)
        for name in (
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
        )
    },
    {"lazily.py": "COUNT = 0\n"},
)
