"""Facts for the scheduler: ports, and calls that concern the whole process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.openfaas.handlers import Handler
from chiron.profiler.function_profile import with_code
from chiron.profiler.handler_run import HandlerRun
from chiron.profiler.shared_resources import (
    RELATIVE,
    Files,
    files,
    in_container,
    looked_up,
    optional_imports,
    perhaps_unshareable,
    ports,
    unshareable,
)
from chiron.workflow.profile import IN_CONTAINER, FunctionProfile
from tests.rows import each_row


def test_ports_are_those_that_are_bound_and_not_left_to_the_kernel(
    handler_run: Callable[..., HandlerRun],
) -> None:
    lines = [
        (1, 1.0, 0.1, "bind(3, {sa_family=AF_INET, sin_port=htons(9000), sin_addr=x}, 16)", "0"),
        (1, 2.0, 0.1, "bind(4, {sa_family=AF_INET6, sin6_port=htons(9001), x}, 28)", "0"),
        (1, 3.0, 0.1, "bind(5, {sa_family=AF_INET, sin_port=htons(0), x}, 16)", "0"),
        (1, 4.0, 0.1, "connect(6, {sa_family=AF_INET, sin_port=htons(80), x}, 16)", "0"),
    ]
    assert ports([handler_run(10, lines)]) == (9000, 9001)


def test_of_temporary_files_with_names_of_their_own_the_folder_is_told(
    handler_run: Callable[..., HandlerRun],
) -> None:
    def run(name: str, folder: str) -> HandlerRun:
        calls = [
            f'openat(AT_FDCWD, "/tmp/{name}", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600)',
            f'openat(AT_FDCWD, "{folder}/{name}", O_WRONLY|O_CREAT|O_CLOEXEC, 0666)',
            f'openat(AT_FDCWD, "{folder}/state", O_WRONLY|O_CREAT|O_CLOEXEC, 0666)',
            f'unlink("/tmp/{name}")',
            'openat(AT_FDCWD, "/tmp", O_RDWR|O_EXCL|O_NOFOLLOW|O_CLOEXEC|O_TMPFILE, 0600)',
            'openat(AT_FDCWD, "/var/", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY)',
        ]
        lines = [(1, float(n), 0.1, call, "3") for n, call in enumerate(calls, 1)]
        return handler_run(20, lines)

    runs = [run(name, "/var/tmp/kept") for name in ("a-b7f1", "c-d20e", "e-ffa3")]  # noqa: S108
    assert files(runs) == Files(
        ("/var",),
        ("/tmp/**", "/var/tmp/kept/state"),  # noqa: S108
    )


def test_files_are_looked_for_and_named_by_many_calls(
    handler_run: Callable[..., HandlerRun],
) -> None:
    absent = "-1 ENOENT (No such file or directory)"
    calls = [
        ('newfstatat(AT_FDCWD, "/data/stat", 0x7f, 0)', absent),
        ('statx(AT_FDCWD, "/data/statx", 0, STATX_ALL, 0x7f)', absent),
        ('access("/data/access", F_OK)', absent),
        ('readlink("/data/link", 0x7f, 4096)', absent),
        ('newfstatat(AT_FDCWD, "/data", {st_mode=S_IFDIR|0777, ...}, 0)', "0"),
        ('newfstatat(AT_FDCWD, "/tmp", {st_mode=S_IFDIR|0777, ...}, 0)', "0"),
        ('newfstatat(AT_FDCWD, "/tmp/made", {st_mode=S_IFREG|0644, ...}, 0)', "0"),
        ('newfstatat(3, "", {st_mode=S_IFREG|0644, ...}, AT_EMPTY_PATH)', "0"),
        ('symlink("/data/target", "/data/new")', "0"),
        ('bind(3, {sa_family=AF_UNIX, sun_path="/data/socket"}, 110)', "0"),
        ('bind(3, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("0.0.0.0")}, 16)', "0"),
    ]
    lines = [(1, float(n), 0.1, call, result) for n, (call, result) in enumerate(calls, 1)]
    assert files([handler_run(20, lines)]) == Files(
        ("/data/access", "/data/link", "/data/stat", "/data/statx", "/tmp/made"),  # noqa: S108
        ("/data/new", "/data/socket"),
    )


@each_row(
    ("code", "found"),
    [
        ("import os\nos.chdir('/')", ("os.chdir",)),
        ("import unittest.mock\nunittest.mock.patch('a.b')", ("unittest.mock.patch",)),
        ("from unittest import mock\nmock.patch.object(1, 'b')", ("unittest.mock.patch",)),
        ("import os as o\no._exit(1)", ("os._exit",)),
        ("from signal import signal as s\ns(2, print)", ("signal.signal",)),
        ("import signal\nx = signal.signal", ("signal.signal",)),
        ("def f():\n    from os import fork\n    fork()", ("os.fork",)),
        ("import multiprocessing.pool as p", ("multiprocessing",)),
        (
            "import contextlib as c, io\nwith c.redirect_stdout(io.StringIO()): pass",
            ("contextlib.redirect_stdout",),
        ),
        ("from multiprocessing import Pool", ("multiprocessing",)),
        (
            "from concurrent.futures import ProcessPoolExecutor as P\nP(2)",
            ("concurrent.futures.ProcessPoolExecutor",),
        ),
        (
            "import json\ndef f(x):\n    json.JSONEncoder.default = x",
            ("json.JSONEncoder.default",),
        ),
        ("import json\ndef f(x):\n    vars(json)['dumps'] = x", ("json.dumps",)),
        (
            "import json\ndef f(x):\n    del json.__dict__['x']\n    x.__dict__['y'] = x",
            ("json.x",),
        ),
        (
            "from requests import Session as S\ndef f(x):\n    setattr(S, 'send', x)",
            ("requests.Session.send",),
        ),
        (
            "import mimetypes as m\ndef f(x):\n    m.types_map[x] = x\n    del m.types_map[x]",
            ("mimetypes.types_map",),
        ),
        ("import os\ndef f(x):\n    os.environ[x] = x\n    x[0] = x", ()),
        ("import json\njson.JSONEncoder.default = str", ()),
        ("import handler\ndef f(x):\n    handler.seen = x", ()),
        ("from flask import g\ndef f(x):\n    g.user = x", ()),
        ("import decimal\ndef f():\n    decimal.getcontext().prec = 5", ()),
        ("import json\ndef f(json):\n    x.y = json", ()),
        ("import os\nos.getcwd()\n'os.chdir'", ()),
        ("class os:\n    chdir = 1\nos.chdir", ()),
        ("from . import os\nos.chdir", ()),
        ("this is no Python", ()),
    ],
)
def test_calls_that_cannot_share_a_process_are_found(
    code: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir(exist_ok=True)
    (tmp_path / "lib" / "deep.py").write_text(code)
    (tmp_path / "handler.py").write_text("def handle(req):\n    return req\n")
    assert unshareable(tmp_path) == found


@each_row(
    ("code", "found"),
    [
        ("def handle(req):\n    return np.load('function/a.npy')", True),
        ("def handle(req):\n    return Path('./function/a').read_text()", True),
        ("def handle(req):\n    return Path('function') / 'a'", True),
        ("def handle(req):\n    return os.path.join('function', 'a')", True),
        ("def handle(req):\n    return run(['cat', 'function/a'])", True),
        ("def handle(req):\n    return f'function/{req}'", True),
        ("MODEL = 'function/a'", True),
        ("handle = lambda req: np.load('function/a')", True),
        ("MODEL = np.load('function/a')", False),
        ("def handle(req):\n    return open('function/a').read()", False),
        ("def handle(req):\n    return json.load(open('function/a'))", False),
        ("def handle(req):\n    return files('function') / 'a'", False),
        ("def handle(req):\n    return import_module('function.a')", False),
        ("PLACE = Path('function') / 'a'", True),
        ("PLACE = os.path.join('function', 'a')", True),
        ("PLACE = Path('function/a')", True),
        ("PAGES = Environment(loader=FileSystemLoader('function/pages'))", True),
        ("def handle(req):\n    return run(req, cwd='function')", True),
        ("def handle(req):\n    return load(os.path.join(os.getcwd(), 'function', 'a'))", True),
        ("def handle(req):\n    return load(Path.cwd() / 'function')", True),
        ("def handle(req):\n    return load(f'{os.getcwd()}/function/a')", True),
        ("def handle(req):\n    return os.system('sh function/a.sh')", True),
        ("def handle(req):\n    return run(f'sort <./function/a >{req}', shell=True)", True),
        ("def handle(req):\n    return run([sys.executable, '-m', 'function.tool'])", True),
        ("def handle(req):\n    return os.popen('python -m function.tool').read()", True),
        ("def handle(req):\n    return run([exe, '-c', 'from function.a import B; B()'])", True),
        ("PROGRAM = 'import json\\nimport function.a as a'", True),
        ("def handle(req):\n    'Values from function calls.'", False),
        ("def handle(req):\n    return run('curl http://gateway:8080/function/b')", False),
        ("def handle(req):\n    log.info('the function/method %s', req)", False),
        ("MODEL = Path('function/a').read_bytes()", False),
        ("MODEL = json.load(open(os.path.join('function', 'a')))", False),
        ("PLACE = os.path.join(os.getcwd(), 'function')", False),
        ("def handle(req):\n    return os.getcwd(), f'{GATEWAY}/function/other'", False),
        ("def handle(req):\n    return 'the function', 'functions/a'", False),
    ],
)
def test_a_path_from_its_working_directory_wants_a_process_of_its_own(
    code: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "handler.py").write_text(code)
    assert unshareable(tmp_path) == ((RELATIVE,) if found else ())


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('openat(AT_FDCWD, "function/a.txt", O_RDONLY|O_CLOEXEC)', True),
        ('newfstatat(AT_FDCWD, "./function", {st_mode=S_IFDIR|0755, ...}, 0)', True),
        ('readlink("function/a", 0x7f, 4096)', True),
        ('openat(AT_FDCWD, ".", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY)', True),
        ('newfstatat(AT_FDCWD, ".", {st_mode=S_IFDIR|0755, ...}, 0)', False),
        ('newfstatat(4, "function", {st_mode=S_IFDIR|0755, ...}, 0)', False),
        ('newfstatat(4, "", {st_mode=S_IFREG|0644, ...}, AT_EMPTY_PATH)', False),
        ('openat(AT_FDCWD, "functions/a", O_RDONLY|O_CLOEXEC)', False),
        ('openat(AT_FDCWD, "/home/function/a", O_RDONLY|O_CLOEXEC)', False),
        ('mkdir("function/a", 0777)', False),
    ],
)
def test_a_run_that_looks_up_its_folder_from_there_wants_one_too(
    call: str, found: bool, handler_run: Callable[..., HandlerRun]
) -> None:
    run = handler_run(10, [(1, 1.0, 0.1, call, "3")])
    assert looked_up([run]) == ((RELATIVE,) if found else ())


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("try:\n    import orjson as json\nexcept ImportError:\n    import json", ("orjson",)),
        ("try:\n    from a.b import c\nexcept (OSError, ModuleNotFoundError):\n    c = 1", ("a",)),
        ("try:\n    import uvloop\nexcept Exception:\n    pass", ("uvloop",)),
        ("def handle(req):\n    return importlib.util.find_spec('numpy.fft')", ("numpy",)),
        ("try:\n    import tomllib\nexcept ImportError:\n    pass", ()),
        ("try:\n    from . import util\nexcept ImportError:\n    pass", ()),
        ("try:\n    import orjson\nexcept OSError:\n    pass", ()),
        ("import orjson", ()),
    ],
)
def test_packages_that_are_done_without_are_found(
    code: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "handler.py").write_text(code)
    assert optional_imports(tmp_path) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("MODEL = load('/home/app/function/model')", True),
        ("sys.path.insert(0, '/home/app/function')", True),
        ("LOG = '/home/app/functions/log'", False),
        ("def handle(req):\n    'Reads /home/app/function/model.'", False),
    ],
)
def test_a_path_in_its_container_wants_a_wrap_of_its_own(
    code: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "handler.py").write_text(code)
    assert unshareable(tmp_path) == ((IN_CONTAINER,) if found else ())


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("handler.js", "const model = '/home/app/function/model'", True),
        ("lib/Own.java", 'File folder = new File("/home/app/function");', True),
        ("handler.js", "const log = '/home/app/functions/log'", False),
        ("node_modules/own/index.js", "'/home/app/function/model'", False),
        ("README.md", "Reads /home/app/function/model.", False),
    ],
)
def test_so_does_one_in_code_of_another_language(
    file: str, text: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert in_container((), tmp_path) == ((IN_CONTAINER,) if found else ())


def test_a_command_in_its_container_wants_a_wrap_of_its_own(tmp_path: Path) -> None:
    words = ("sh", "/home/app/function/run.sh")
    handler = Handler("f", tmp_path, "command", words, shares_process=False)
    seen = with_code(FunctionProfile(latency_ms=0.0, periods=()), handler)
    assert seen.unshareable == (IN_CONTAINER,)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import random\ndef f():\n    random.seed(1)", ("random.seed",)),
        ("import numpy as np\ndef f():\n    np.random.seed(1)", ("numpy.random.seed",)),
        ("import os\ndef f():\n    os.environ['A'] = '1'", ("os.environ[]",)),
        ("from os import environ\ndef f():\n    environ.pop('A')", ("os.environ.pop",)),
        (
            "import logging\ndef f(h):\n    logging.getLogger().addHandler(h)",
            ("logging.getLogger().addHandler",),
        ),
        ("import random, os\nrandom.seed(1)\nos.environ['A'] = '1'", ()),
        ("import random, os\ndef f():\n    random.random(), os.environ['A']", ()),
        ("import logging\ndef f(h):\n    logging.getLogger('mine').addHandler(h)", ()),
    ],
)
def test_calls_that_may_concern_others_are_named_by_functions(
    code: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "handler.py").write_text(code)
    assert perhaps_unshareable(tmp_path) == found
    assert unshareable(tmp_path) == ()
