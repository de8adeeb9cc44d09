"""What finds a function's modules by the name ``function`` finds the function's own, as alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

#: What a handler answers where it is asked for something of this table.
ASKED = {
    "pickle.load(open(pathlib.Path(__file__).parent / 'one.pkl', 'rb')).predict(14)": 42,
    "pickle.loads(pickle.dumps(Own(2))).twice()": 4,
    "b'function.handler' in pickle.dumps(Own(2))": True,
    "b'_function' in pickle.dumps(model.Scaler())": False,
    "pickle.loads(pickle.dumps(model.Scaler)) is model.Scaler": True,
    "Own.__module__": "function.handler",
    "sys.modules[__name__].NAME": "own",
    "importlib.import_module('function.model').NAME": "own",
    "importlib.import_module('.late', 'function').NAME": "own",
    "importlib.resources.files('function').joinpath('data.txt').read_text()": "data of own",
    "pkgutil.get_data('function', 'data.txt').decode()": "data of own",
    "pkgutil.resolve_name('function.late:NAME')": "own",
    "inspect.getmodule(Own).NAME": "own",
}
#: The same of what has processes of its own.
IN_PROCESSES = {
    "spawned('forkserver')": [1, 4, 9],
    "joblib.Parallel(2)(joblib.delayed(square)(x) for x in (1, 2, 3))": [1, 4, 9],
    "process('spawn')": [0, "own"],
}
HANDLER = """
from __future__ import annotations

import concurrent.futures, dataclasses, importlib, importlib.resources, inspect, joblib
import json, multiprocessing, pathlib, pickle, pkgutil, sys
from function import model

NAME = model.NAME

@dataclasses.dataclass
class Own:
    x: int

    def twice(self):
        return 2 * self.x

def square(x):
    return x * x

def spawned(how):
    context = multiprocessing.get_context(how)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(square, [1, 2, 3]))

def put(queue):
    from function import late
    queue.put(late.NAME)

def process(how):
    context = multiprocessing.get_context(how)
    queue = context.Queue()
    process = context.Process(target=put, args=[queue])
    process.start()
    name = queue.get()
    process.join()
    return [process.exitcode, name]

def handle(req):
    # Two threads that make joblib's shared pool at the same time fail each other.
    if NAME != "own" and "joblib" in req:
        return ""
    return json.dumps(eval(json.loads(req)))
"""
PICKLE = "cfunction.model\nScaler\n(tR(dS'factor'\nI3\nsb."


def files(name: str) -> dict[str, str]:
    """A function whose modules have the names that those of another one have."""
    return {
        "__init__.py": "",
        "handler.py": HANDLER,
        "model.py": f"""
            NAME = {name!r}

            class Scaler:
                factor = 1

                def predict(self, x):
                    return x * self.factor
        """,
        "late.py": f"NAME = {name!r}\n",
        "one.pkl": PICKLE,
        "data.txt": f"data of {name}",
    }


@pytest.mark.parametrize(
    ("processes", "table"), [([[0, 1]], ASKED), ([[], [0], [1]], ASKED | IN_PROCESSES)]
)
def test_beside_a_function_with_modules_of_the_same_names(processes, table, start, wrap_image):
    handlers = {"one": files("own"), "two": files("other")}
    server = start(wrap_image(handlers, processes, entry={"output": 0}))
    found = {asked: server.request(body=json.dumps(asked)) for asked in table}
    assert {asked: it.text for asked, it in found.items() if it.json != table[asked]} == {}


BY_PATH = """
    import json, os, pickle, sys
    sys.path.insert(0, os.path.dirname(__file__))
    import model

    def handle(req):
        found = [pickle._loads(b"clate\\nNAME\\n."), pickle.loads(b"cpack.inner\\nNAME\\n.")]
        return json.dumps([*found, pickle.loads(b"cmodel\\nNAME\\n."), sys.modules["model"].NAME])
"""


def test_names_of_modules_by_path_mean_each_functions_own(start: Any, wrap_image: Any) -> None:
    def modules(name: str) -> dict[str, str]:
        places = ("model.py", "late.py", "pack/inner.py")
        return {"handler.py": BY_PATH, **dict.fromkeys(places, f"NAME = {name!r}\n")}

    handlers = {name: modules(name) for name in ("one", "two")}
    server = start(wrap_image(handlers, [[0, 1]], entry={"output": [0, 1]}))
    assert [server.request().json for _ in range(2)] == [[["one"] * 4, ["two"] * 4]] * 2


def test_a_module_of_another_function_is_none(start: Any, wrap_image: Any) -> None:
    ships = {"handler.py": "import model\ndef handle(req):\n    return '1'\n", "model.py": ""}
    lacks = """
        def handle(req):
            try:
                import model
            except ModuleNotFoundError:
                return "none"
    """
    image = wrap_image({"ships": ships, "lacks": lacks}, entry={"output": [0, 1]})
    assert start(image).request().json == [1, "none"]


BESIDE_ITS_FILE = "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'vendor'))"
#: How a function has its folder ``vendor`` searched.
VENDORED = [
    BESIDE_ITS_FILE,
    "sys.path.insert(0, './function/vendor')",
    "import site; site.addsitedir(os.path.join(os.path.dirname(__file__), 'vendor'))",
]


@pytest.mark.each_once
@pytest.mark.parametrize("vendored", VENDORED)
@pytest.mark.parametrize(
    "layout",
    [
        {"processes": [[0, 1]]},
        {"processes": [[], [0], [1]]},
        {"processes": [[], [0, 1]], "mechanism": "pool"},
    ],
)
def test_packages_in_a_functions_own_folders_are_no_others(layout, vendored, start, wrap_image):
    handler = f"""
        import os, sys
        {vendored}
        import shipped
        from shipped import inner
        def handle(req):
            import certifi, late, shipped.deep as deep
            return shipped.NAME + inner.NAME + late.NAME + deep.NAME
    """

    def function(name: str) -> dict[str, str]:
        return {
            "handler.py": handler,
            "vendor/shipped/__init__.py": f"NAME = '{name}'\n",
            "vendor/shipped/inner.py": f"NAME = '{name}'\n",
            "vendor/shipped/deep.py": "from shipped import NAME\n",
            "vendor/late.py": "from shipped.inner import NAME\n",
        }

    handlers = {name: function(name) for name in ("a", "b")}
    server = start(wrap_image(handlers, entry={"output": [0, 1]}, **layout))
    assert [server.request().json for _ in range(2)] == [["aaaa", "bbbb"]] * 2


def test_its_own_version_of_what_is_installed_is_no_others(start: Any, wrap_image: Any) -> None:
    gets = "import certifi\ndef handle(req):\n    return getattr(certifi, 'NAME', 'installed')\n"
    ships = f"import os, sys\n{BESIDE_ITS_FILE}\n{gets}"
    brings = {"handler.py": ships, "vendor/certifi.py": "NAME = 'own'\n"}
    for processes, handlers, expected in [
        ([[0, 1]], {"a": brings, "b": {"handler.py": gets}}, ["own", "installed"]),
        ([[], [0], [1]], {"c": {"handler.py": gets}, "d": brings}, ["installed", "own"]),
    ]:
        image = wrap_image(handlers, processes, name="-".join(handlers), entry={"output": [0, 1]})
        assert start(image).request().json == expected


def test_two_versions_of_what_pip_has_put_into_functions_are_refused(run_to_end, wrap_image):
    handler = f"import os, sys\n{BESIDE_ITS_FILE}\nimport given\ndef handle(req): return '1'\n"
    files = {"handler.py": handler, "vendor/given.py": "", "vendor/given-1.dist-info/METADATA": ""}
    status, log = run_to_end(wrap_image({"a": files, "b": files}, entry={"output": [0, 1]}))
    assert status != 0
    assert "module given is loaded from" in log
    assert "use a wrap for each of the functions" in log


def test_what_forks_of_multiprocessing_spawn_finds_the_function(start, wrap_image, tmp_path):
    library = tmp_path / "lib" / "forked"
    library.mkdir(parents=True)
    text = "def get_preparation_data(name): return {'sys_path': []}\n"
    (library / "spawn.py").write_text(text)
    handler = f"""
        import sys
        sys.path.append({str(library.parent)!r})
        import forked.spawn
        from function import spawn
        def handle(req):
            folder, = forked.spawn.get_preparation_data("x")["sys_path"]
            return f"{{spawn.NAME}} {{folder}}"
    """
    handlers = {
        name: {"handler.py": handler, "spawn.py": f"NAME = '{name}'\n"} for name in ("a", "b")
    }
    image = wrap_image(handlers, entry={"output": [0, 1]})
    folders = [f"{name} {image}/function/functions/{name}/function" for name in handlers]
    assert start(image).request().json == folders


_PACKAGE = {
    "handler/__init__.py": "from function import settings\nfrom .work import handle\n",
    "handler/work.py": "from . import words\nfrom .. import settings\n"
    "def handle(req):\n    return f'{words.FIRST} {settings.SECOND} {__name__}'\n",
    "handler/words.py": "FIRST = 'the'\n",
    "settings.py": "SECOND = 'package'\n",
}


@pytest.mark.parametrize("processes", [[[0, 1]], [[], [0], [1]]])
def test_a_package_may_be_the_handler(processes: Any, start: Any, wrap_image: Any) -> None:
    files = {"one": _PACKAGE, "two": "def handle(req):\n    return 'another'\n"}
    server = start(wrap_image(files, processes, entry={"output": [0, 1]}))
    assert server.request().json == ["the package function.handler.work", "another"]


def test_a_package_comes_before_a_module_of_its_name(start: Any, plain_image: Any) -> None:
    image = plain_image("def handle(req):\n    return 'the module'\n")
    for path, text in _PACKAGE.items():
        (image / "function" / path).parent.mkdir(exist_ok=True)
        (image / "function" / path).write_text(text)
    assert start(image).request().text == "the package function.handler.work"
