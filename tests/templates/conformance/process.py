"""Behaviours of the process, the threads and the standard library that a handler uses."""

from __future__ import annotations

from behaviour import Behaviour, Family, Request, asked, one, varying

_HANDLER = """
import array, ast, asyncio, atexit, base64, bisect, builtins, calendar, codecs, collections
import concurrent.futures as cf, contextlib, contextvars, copy, csv, ctypes, datetime, decimal
import difflib, email.message, faulthandler, fcntl, fractions, functools, gc, getpass, gzip, hashlib
import heapq, html, http.client, io, itertools, json, locale, logging, math, mmap, multiprocessing
import multiprocessing.shared_memory, operator, os, pathlib, platform, queue, random, re, resource
import sched, secrets, select, selectors, shlex, shutil, signal, site, socket, sqlite3, ssl, stat
import statistics, string, struct, subprocess, sys, sysconfig, tempfile, textwrap, threading, time
import traceback, tracemalloc, unicodedata, urllib.parse, urllib.request, uuid, warnings, weakref
import xml.etree.ElementTree, zipfile, zlib, zoneinfo

VAR = contextvars.ContextVar("VAR", default="unset")
LOCAL = threading.local()

def square(x):
    return x * x

def depth(n):
    return n and depth(n - 1) + 1

def said(error_of):
    try:
        return error_of()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

def forked(code):
    pid = os.fork()
    if pid == 0:
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def waited():
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    return os.wait()[0] == pid

def process_of(how):
    context = multiprocessing.get_context(how)
    process = context.Process(target=sys.exit, args=(5,))
    process.start()
    process.join()
    return process.exitcode

def pooled(how):
    with cf.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(how)) as pool:
        return list(pool.map(square, [1, 2, 3]))

def pool_of(how):
    with multiprocessing.get_context(how).Pool(2) as pool:
        return pool.map(square, [1, 2, 3])

def piped(how):
    context = multiprocessing.get_context(how)
    receiver, sender = context.Pipe()
    process = context.Process(target=sender.send, args=([1, 2],))
    process.start()
    found = receiver.recv()
    process.join()
    return found

def shared():
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=10)
    memory.buf[0] = 7
    again = multiprocessing.shared_memory.SharedMemory(memory.name)
    found = again.buf[0]
    again.close()
    memory.close()
    memory.unlink()
    return found

def alarm():
    found = []
    timer = threading.Timer(0.01, found.append, ["rang"])
    timer.start()
    timer.join()
    return found

def redirected():
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        print("captured")
        subprocess.run(["echo", "not captured"])
    return buffer.getvalue()

def logged():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    logging.warning("careful")
    logging.getLogger().removeHandler(handler)
    return stream.getvalue()

def finalized():
    found = []
    class Kept: pass
    kept = Kept()
    kept.itself = kept
    weakref.finalize(kept, found.append, 1)
    del kept
    gc.collect()
    return found

def in_thread(run):
    with cf.ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()

async def gathered():
    return await asyncio.gather(*(asyncio.sleep(0.001, n) for n in range(3)))

async def program():
    process = await asyncio.create_subprocess_exec("echo", "x", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()

async def stream():
    server = await asyncio.start_server(lambda r, w: (w.write(b"hi"), w.close()), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        found = await reader.read()
        writer.close()
    return found.decode()

def fetched(run):
    return run(os.environ["CONFORMANCE_URL"] + "/item/7")

def set_and_reset():
    token = VAR.set("mine")
    found = VAR.get()
    VAR.reset(token)
    return [found, VAR.get()]

def locked():
    with tempfile.TemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_EX)
        return "locked"

def mapped():
    pages = mmap.mmap(-1, 4096)
    pid = os.fork()
    if pid == 0:
        pages[0] = 9
        os._exit(0)
    os.waitpid(pid, 0)
    return pages[0]

def ignored(signal_number):
    code = f"import signal; print(signal.getsignal({signal_number}) is signal.SIG_IGN)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).stdout.decode()

def database():
    db = sqlite3.connect(":memory:")
    db.execute("create table t (x)")
    db.execute("insert into t values (1)")
    return db.execute("select * from t").fetchall()

def selected():
    left, right = socket.socketpair()
    with left, right, selectors.DefaultSelector() as selector:
        selector.register(left, selectors.EVENT_READ)
        right.send(b"x")
        return len(selector.select(5))

def handle(req):
    return json.dumps(eval(req), default=repr)
"""

PROCESS = Family(
    "flask",
    _HANDLER,
    asked("""
        threading.current_thread() is threading.main_thread()
        threading.current_thread().daemon
        said(lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL))
        said(lambda: signal.alarm(0))
        said(lambda: signal.set_wakeup_fd(-1))
        said(asyncio.get_running_loop)
        said(asyncio.get_event_loop)[:32]
        threading.stack_size()
        sys.getrecursionlimit()
        depth(900)
        len(json.dumps(json.loads('[' * 800 + ']' * 800)))
        said(lambda: depth(100000))
        said(lambda: json.loads('[' * 100000))
        sys.getswitchinterval()
        gc.isenabled()
        gc.get_threshold()
        gc.get_freeze_count()
        gc.get_debug()
        finalized()
        tracemalloc.is_tracing()
        sys.gettrace()
        sys.getprofile()
        sys.flags.utf8_mode
        sys.flags.optimize
        sys.flags.isolated
        sys.flags.no_site
        sys.flags.dev_mode
        sys.dont_write_bytecode
        sys.getdefaultencoding()
        sys.getfilesystemencoding()
        sys.stdout.encoding
        sys.stderr.encoding
        sys.stdin.read()
        said(input)
        sys.stdin.isatty()
        sys.stdout.isatty()
        sys.stdout.writable()
        sys.stdout.fileno()
        sys.stderr.fileno()
        sys.stdout.buffer.write(b'raw\\n')
        sys.stdout.write('text\\n')
        sys.stdout.errors
        sys.stdout.closed
        sys.stdout.flush()
        sys.__stdout__ is not None
        os.write(1, b'written\\n')
        print('printed', end='', flush=True)
        print('\\ud800'.encode('utf-8', 'replace').decode())
        said(lambda: print('gr\\u00fc\\u00dfe'))
        said(lambda: print('\\ud800'))
        said(lambda: print('\\ud800', file=sys.stderr))
        said(lambda: print('\\udc80'))
        sys.displayhook is sys.__displayhook__
        sys.excepthook is sys.__excepthook__
        threading.excepthook is threading.__excepthook__
        sys.unraisablehook is sys.__unraisablehook__
        redirected()
        logged()
        logging.getLogger().level
        logging.getLogger().handlers
        logging.root.manager.disable
        logging.getLogger('x').isEnabledFor(logging.INFO)
        logging.lastResort is not None
        logging.getLoggerClass().__name__
        warnings.filters[0][0]
        faulthandler.is_enabled()
        os.umask(os.umask(0o22))
        os.getpriority(os.PRIO_PROCESS, 0) >= 0
        os.getuid() == os.geteuid()
        os.environ['PYTHONUNBUFFERED']
        os.environ.get('HOME') == os.getcwd()
        sorted(name for name in os.environ if name.startswith(('OMP', 'OPENBLAS', 'MKL', 'PYTHON')))
        os.cpu_count() == multiprocessing.cpu_count()
        len(os.sched_getaffinity(0)) <= os.cpu_count()
        resource.getrlimit(resource.RLIMIT_CORE)[0] <= resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.getrlimit(resource.RLIMIT_STACK)[0] > 0
        resource.getrlimit(resource.RLIMIT_CPU)
        resource.getrlimit(resource.RLIMIT_AS)
        list(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        signal.getsignal(signal.SIGPIPE)
        signal.getsignal(signal.SIGCHLD)
        signal.getsignal(signal.SIGUSR1)
        signal.getsignal(signal.SIGALRM)
        signal.getsignal(signal.SIGHUP)
        ignored(signal.SIGTERM)
        ignored(signal.SIGHUP)
        ignored(signal.SIGCHLD)
        ignored(signal.SIGINT)
        signal.getitimer(signal.ITIMER_REAL)
        forked(4)
        waited()
        said(lambda: os.waitpid(-1, os.WNOHANG))
        said(lambda: os.kill(os.getpid(), 0))
        multiprocessing.active_children()
        multiprocessing.current_process().name
        multiprocessing.current_process().daemon
        multiprocessing.parent_process()
        multiprocessing.get_start_method()
        process_of('fork')
        process_of('spawn')
        process_of('forkserver')
        pooled('fork')
        pooled('spawn')
        pooled('forkserver')
        pool_of('fork')
        pool_of('spawn')
        pool_of('forkserver')
        piped('fork')
        piped('spawn')
        shared()
        multiprocessing.Value('i', 3).value
        subprocess.run(['sh', '-c', 'exit 3']).returncode
        subprocess.run('yes | head -1', shell=True, capture_output=True).stdout.decode()
        subprocess.run(['cat'], input=b'given', capture_output=True).stdout.decode()
        subprocess.run(['cat'], capture_output=True, stdin=subprocess.DEVNULL).stdout.decode()
        subprocess.check_output(['sh', '-c', 'echo $PPID']).decode().strip() == str(os.getpid())
        subprocess.run(['sh', '-c', 'kill -9 $$']).returncode
        said(lambda: subprocess.run(['sleep', '10'], timeout=0.01))[:14]
        said(lambda: subprocess.run(['absent-program']))
        subprocess.Popen(['true']).wait()
        os.system('exit 3')
        os.popen('echo x').read()
        os.spawnlp(os.P_WAIT, 'true', 'true')
        os.posix_spawn('/bin/true', ['true'], {}) > 0
        ctypes.CDLL(None).getpid() == os.getpid()
        os.getpid() == int(os.readlink('/proc/self'))
        os.getpgid(0) > 0
        threading.get_native_id() > 0
        in_thread(threading.current_thread).daemon
        in_thread(lambda: VAR.get())
        alarm()
        set_and_reset()
        hasattr(LOCAL, 'absent')
        asyncio.run(gathered())
        asyncio.run(program())
        asyncio.run(stream())
        in_thread(lambda: asyncio.run(gathered()))
        asyncio.new_event_loop().run_until_complete(asyncio.sleep(0, 'slept'))
        type(asyncio.get_event_loop_policy()).__name__
        list(cf.ThreadPoolExecutor(4).map(square, range(4)))
        sum(cf.ThreadPoolExecutor(8).map(lambda _: sum(range(1000)), range(8)))
        queue.Queue().empty()
        decimal.getcontext().prec
        decimal.Decimal(1) / 3
        decimal.getcontext().rounding
        locale.getlocale()
        locale.setlocale(locale.LC_ALL)
        locale.getpreferredencoding(False)
        '{:n}'.format(1234567)
        time.tzname[0]
        time.localtime().tm_zone
        datetime.datetime.now().astimezone().utcoffset().total_seconds()
        datetime.datetime.fromtimestamp(0).isoformat()
        datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).isoformat()
        time.get_clock_info('monotonic').implementation
        time.sleep(0.001)
        socket.getdefaulttimeout()
        socket.socket().gettimeout()
        socket.gethostbyname('localhost')
        selected()
        os.get_inheritable(socket.socket().fileno())
        fetched(lambda url: urllib.request.urlopen(url).read().decode())
        fetched(lambda url: __import__('requests').get(url).text)
        fetched(lambda url: [__import__('requests').Session().get(url).text for _ in range(3)])
        fetched(lambda url: in_thread(lambda: urllib.request.urlopen(url).read().decode()))
        ssl.create_default_context().check_hostname
        database()
        sqlite3.threadsafety
        locked()
        mapped()
        tempfile.gettempdir()
        os.path.isdir(tempfile.mkdtemp())
        tempfile.NamedTemporaryFile().name.startswith(tempfile.gettempdir())
        len(str(2 ** 5000))
        said(lambda: len(str(10 ** 5000)))
        sys.get_int_max_str_digits()
        hashlib.sha256(b'x').hexdigest()
        zlib.crc32(b'x')
        gzip.decompress(gzip.compress(b'x')).decode()
        struct.calcsize('P')
        unicodedata.normalize('NFC', 'e\\u0301')
        '\\u0130'.lower()
        'na\\u00efve'.encode('latin-1').hex()
        codecs.lookup('utf-8').name
        re.sub(r'(?i)A', 'b', 'aA')
        statistics.mean([1, 2])
        uuid.uuid5(uuid.NAMESPACE_DNS, 'a').hex
        random.Random(7).random()
        [random.seed(7), random.random()][1]
        __import__('numpy').random.default_rng(7).random()
        __import__('numpy').geterr()['divide']
        __import__('numpy').get_printoptions()['precision']
        __import__('numpy').linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
        hash('a') == hash('a')
        builtins.len is len
        builtins.__import__ is not None
        isinstance(__builtins__, dict)
        open is io.open
        open.__name__
        said(lambda: compile('1 +', 'made.py', 'exec'))
        said(lambda: open('/absent'))
        said(lambda: __import__('absent_module'))
        said(lambda: importlib)
        said(lambda: sys.exit(3))
        said(lambda: exit(3))
        said(lambda: quit())
        platform.python_implementation()
        sys.executable != ''
        sys.prefix != ''
        site.ENABLE_USER_SITE
        sys.version_info.major
        getattr(sys, '_called_from_test', None)
        [name for name in sys.modules if name.startswith('function')][:1]
        sys.path_hooks != []
        getpass.getuser() != ''
        said(lambda: os.get_terminal_size())
        shutil.get_terminal_size()
        said(lambda: os.ttyname(0))
        os.path.realpath('/proc/self/fd/0')
        os.nice(0) >= 0
        [os.sched_getscheduler(0), os.SCHED_OTHER][1]
        os.times().user >= 0
        os.stat('.').st_mode & 0o700
        os.access('.', os.W_OK)
        xml.etree.ElementTree.fromstring('<a>x</a>').text
    """),
    {},
)

VARIES = Family(
    "flask",
    _HANDLER + "import numpy as np\nfrom scipy.stats import norm\nTHREE = random.Random(3)\n",
    varying("""
        random.random()
        random.randrange(1 << 60)
        random.choices(range(100), k=10)
        random.getrandbits(64)
        random.SystemRandom().random()
        random.Random().random()
        secrets.token_hex(8)
        os.urandom(8).hex()
        uuid.uuid1().hex
        uuid.uuid4().hex
        tempfile.mktemp()
        tempfile.mkdtemp()
        tempfile.mkstemp()[1]
        tempfile.NamedTemporaryFile().name
        np.random.random()
        np.random.random_sample()
        np.random.randint(1 << 60)
        np.random.default_rng().random()
        norm.rvs()
        time.time_ns()
        next(tempfile._get_candidate_names())
        np.random.RandomState().rand()
    """)
    | {
        "random.seed() again": Behaviour(
            (Request("[random.seed(), random.random()][1]"),) * 4, varies=True
        )
    },
)
#: Random numbers of objects that a module makes when it is imported.
RANDOM_OBJECTS = Family(
    "flask",
    "import json, random, uuid, tempfile\nimport numpy as np\n"
    "OWN = random.Random()\nRNG = np.random.default_rng()\nSTATE = np.random.RandomState()\n"
    "NAMES = tempfile._RandomNameSequence()\n_ = next(NAMES)\n"
    "class Client:\n    def __init__(self):\n        self.jitter = random.Random()\n"
    "CLIENT = Client()\nDRAW = random.Random().random\n"
    "def handle(req):\n    return json.dumps(eval(req))\n",
    varying("""
        OWN.random()
        RNG.random()
        STATE.rand()
        next(NAMES)
        CLIENT.jitter.random()
        DRAW()
    """),
)
#: Random numbers that are the same in each request of a new process, and go on from there.
SEEDED_AT_IMPORT = Family(
    "flask",
    "import json, random\nimport numpy as np\nrandom.seed(3)\nnp.random.seed(3)\n"
    "RNG = random.Random(3)\nBITS = np.random.default_rng(3)\n"
    "def handle(req):\n    return json.dumps(eval(req))\n",
    {
        name: one(*(Request(name),) * 3)
        for name in ("random.random()", "np.random.random()", "RNG.random()", "BITS.random()")
    },
)
