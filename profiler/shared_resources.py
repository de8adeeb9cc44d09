"""Resources that functions in one sandbox would share: files, ports, and process-wide state."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

from chiron.openfaas.handler_folder import CONTAINER_FOLDER
from chiron.openfaas.handlers import OF_FAAS_CLI
from chiron.profiler.blocking import LINKING, LOOKING
from chiron.profiler.handler_run import HandlerRun
from chiron.profiler.strace_text import Call
from chiron.workflow.profile import ANY_NAME, IN_CONTAINER
from chiron.workflow.python_code import syntax_tree

_PORT = re.compile(r"\bsin6?_port=htons\((\d+)\)")
_NAMES = {
    "os": (
        "_exit abort chdir chroot fchdir fork forkpty nice posix_spawn posix_spawnp setegid "
        "seteuid setgid setpgid setpriority setsid setuid umask "
        "dup2 execl execle execlp execv execve execvp execvpe"
    ),
    "concurrent.futures": "ProcessPoolExecutor",
    "contextlib": "redirect_stderr redirect_stdout",
    "signal": "alarm pthread_sigmask set_wakeup_fd setitimer signal",
    "sys": "setprofile setrecursionlimit setswitchinterval settrace",
    "socket": "setdefaulttimeout",
    "locale": "setlocale",
    "resource": "setrlimit",
    "time": "tzset",
    "unittest.mock": "patch",
}
#: Calls of the standard library that change, end or fork the calling process.
CALLS = frozenset(f"{module}.{name}" for module, names in _NAMES.items() for name in names.split())
_MORE_NAMES = {
    "logging": "disable",
    "logging.config": "dictConfig fileConfig",
    "logging.getLogger()": "addHandler",
    "numpy.random": "seed set_state",
    "os": "environ[] putenv unsetenv",
    "os.environ": "clear pop setdefault update",
    "random": "seed setstate",
}
#: Calls that may change the process, which only a run shows.
PERHAPS = frozenset(f"{module}.{n}" for module, names in _MORE_NAMES.items() for n in names.split())
#: Modules whose import suffices: they start processes from a process with threads.
MODULES = frozenset({"billiard", "loky", "multiprocess", "multiprocessing", "pathos"})
#: Packages whose objects are local to a call or a thread.
_PER_CALL = frozenset({"contextvars", "flask", "threading"})
#: The resource of a function that finds its folder by a path from its working directory.
RELATIVE = "a path relative to its working directory"
_IN_CONTAINER = re.compile(rf"{CONTAINER_FOLDER}(?![\w.-])")
#: Folders and suffixes of what is not a function's own code.
_NO_CODE = OF_FAAS_CLI | {"node_modules", ".md", ".txt"}
_OWN_PATH = re.compile(r"\./function(/|$)|function/")
_FOLDER, _BELOW = "function", re.compile(r"(^|/)function(/|$)")
#: Calls that store a path unresolved, and calls that search it whenever something is loaded.
_OF_PATHS, _OF_LOADERS = frozenset({"Path", "PurePath", "join"}), frozenset({"FileSystemLoader"})
#: The folder in the command of a program: as a word, or as a package.
_IN_COMMAND = re.compile(r"(^|[\s=<>\"'])(\./)?function/|^function(\.\w+)+$|-m function\.")
_STARTING = frozenset(
    {"system", "popen", "run", "Popen", "call", "check_call", "check_output", "getoutput"}
    | {"getstatusoutput", "create_subprocess_exec", "create_subprocess_shell"}
)
#: The package in Python code passed to a program, which imports it from its working directory.
_IN_PROGRAM = re.compile(r"\bimport function\b|\bfrom function(\.\w+)* import\b")
#: Calls whose first argument is a path, even if it is just the folder's name.
_OF_FOLDERS = _OF_PATHS | _OF_LOADERS | {"listdir", "scandir", "walk"}
#: The errors of a missing module, and their base classes.
_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
#: Calls that return the working directory.
_CURRENT = frozenset({"cwd", "getcwd"})
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r"\d+")
#: A number that is equal in all runs and may be a process id; shorter numbers are not.
_OF_PROCESS = re.compile(r"\d{4,}")
_OPENING = frozenset({"open", "openat", "openat2", "creat"})
#: The folders that are empty in a function's new sandbox.
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108
_CHANGING = frozenset(
    {"unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir"}
    | {"truncate"}
)
_WRITING_FLAGS = re.compile(r"\b(O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND)\b")


def ports(runs: Sequence[HandlerRun]) -> tuple[int, ...]:
    """Return the ports that any of `runs` bound, without port 0, which stands for any free port."""
    bound = {
        int(match[1])
        for run in runs
        for strand in run.strands
        for call in strand.calls
        if call.name == "bind" and (match := _PORT.search(call.arguments))
    }
    return tuple(sorted(bound - {0}))


def unshareable(*places: Path) -> tuple[str, ...]:
    """Return the process-wide calls in the Python files in `places`: ``module.name``, sorted.

    `RELATIVE` and `IN_CONTAINER` may be among them. Names are followed through imports and their
    aliases, not through other assignments. Files that are not Python are ignored.
    """
    found: set[str] = set()
    own = {"", _FOLDER, *_PER_CALL, *(file.stem for place in places for file in place.glob("*"))}
    for tree in _trees(places):
        with contextlib.suppress(RecursionError):
            names = _imported(tree)
            found.update(_set_attributes(tree, names, own))
            found.update(MODULES & {name.partition(".")[0] for name in names.values()})
            found.update(_named(tree, names, CALLS))
            if any(_own_paths(tree)) or any(map(_IN_PROGRAM.search, _texts(tree))):
                found.add(RELATIVE)
            if any(map(_IN_CONTAINER.match, _texts(tree))):
                found.add(IN_CONTAINER)
    return tuple(sorted(found))


def in_container(words: Iterable[str], *places: Path) -> tuple[str, ...]:
    """Return `IN_CONTAINER` if `words`, or code in `places` in any language, names that folder."""
    own = (
        file.read_text("latin-1")
        for place in places
        for file in (place.rglob("*") if place.is_dir() else [place])
        if file.is_file() and _NO_CODE.isdisjoint({file.suffix, *file.relative_to(place).parts})
    )
    return (IN_CONTAINER,) if any(map(_IN_CONTAINER.search, chain(words, own))) else ()


def looked_up(runs: Sequence[HandlerRun]) -> tuple[str, ...]:
    """Return `RELATIVE` if any of `runs`, or a program of theirs, looks up the folder relatively.

    Listing the working directory counts too: alone, the function finds its folder there.
    """
    calls = (call for run in runs for strand in run.strands for call in strand.calls)
    found = any(map(_is_in_directory, calls))
    return (RELATIVE,) if found else ()


def _is_in_directory(call: Call) -> bool:
    opens = call.name in _OPENING
    if not (opens or call.name in LOOKING) or not call.arguments.startswith(('"', "AT_FDCWD")):
        return False
    tops = [PurePosixPath(path).parts[:1] for path in _paths(call)]
    return (_FOLDER,) in tops or (opens and () in tops)  # shells look at `.` too


def perhaps_unshareable(*places: Path) -> tuple[str, ...]:
    """Return further calls in `places` that only a profile shows to change the process."""
    found: set[str] = set()
    for tree in _trees(places):
        with contextlib.suppress(RecursionError):
            names = _imported(tree)
            for each in ast.walk(tree):  # changes at a module's import are undone
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.update(_named(each, names, PERHAPS))
    return tuple(sorted(found))


def optional_imports(*places: Path) -> tuple[str, ...]:
    """Return the packages that the Python files in `places` use only if installed, sorted."""
    found: set[str] = set()
    for tree in _trees(places):
        for node in ast.walk(tree):
            match node:
                case ast.Try(body=body, handlers=handlers) if any(map(_is_of_import, handlers)):
                    found.update(name.partition(".")[0] for name in _modules_in(body))
                case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                    if _called(node) == "find_spec":
                        found.add(name.partition(".")[0])
    return tuple(sorted(found - sys.stdlib_module_names - {"", _FOLDER}))


def _is_of_import(handler: ast.ExceptHandler) -> bool:
    """Return whether the handler handles a missing module."""
    if handler.type is None:
        return True
    return any(_called(each) in _MISSING for each in ast.walk(handler.type))


def _modules_in(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in chain.from_iterable(map(ast.walk, body)):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module


def _trees(places: Iterable[Path]) -> Iterator[ast.Module]:
    for place in places:
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            top = file.relative_to(place).parts[:1]
            if file.suffix == ".py" and OF_FAAS_CLI.isdisjoint(top):
                with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                    yield syntax_tree(file.read_bytes())


def _named(tree: ast.AST, names: Mapping[str, str], wanted: Collection[str]) -> set[str]:
    return {whole for node in ast.walk(tree) if (whole := _dotted(node, names)) in wanted}


def _set_attributes(tree: ast.AST, names: Mapping[str, str], own: Collection[str]) -> Iterator[str]:
    """Yield what functions in `tree` set of libraries, even temporarily: attributes and items.

    `own` are the modules that belong to no library.
    """
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    functions = [each for each in ast.walk(tree) if isinstance(each, kinds)]
    for node in (node for each in functions for node in ast.walk(each)):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                whole = _dotted(node, names)
            case ast.Call(func=ast.Name(id="setattr"), args=[of, ast.Constant(value=str(name)), _]):
                whole = f"{_dotted(of, names)}.{name}"
            case ast.Subscript(
                value=ast.Attribute(value=of, attr="__dict__")
                | ast.Call(func=ast.Name(id="vars"), args=[of]),
                slice=ast.Constant(value=str(name)),
                ctx=ast.Store() | ast.Del(),
            ):
                whole = f"{_dotted(of, names)}.{name}"
            case ast.Subscript(value=of, ctx=ast.Store() | ast.Del()):
                whole = _dotted(of, names)
                if f"{whole}[]" in PERHAPS:
                    continue
            case _:
                continue
        if whole.partition(".")[0] not in own and "()" not in whole:
            yield whole


def _dotted(node: ast.AST, names: Mapping[str, str]) -> str:
    match node:
        case ast.Attribute():
            return f"{_dotted(node.value, names)}.{node.attr}"
        case ast.Name():
            return names.get(node.id, "")
        case ast.Call(args=[]):
            return f"{_dotted(node.func, names)}()"
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return f"{_dotted(node.value, names)}[]"
    return ""


def _own_paths(node: ast.AST, *, runs: bool = False, used: bool = False) -> Iterator[str]:
    """Yield paths in the code for which the process must be in the function's working directory.

    Paths passed to ``open`` do not count, as a function's own ``open`` finds them everywhere. Nor
    do arguments of calls at the top of a module, which use them at once: modules are imported in
    that directory. `runs` is whether `node` is within a function, `used` whether in such a call.
    """
    runs = runs or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    if isinstance(node, ast.Call):
        called = _called(node)
        if runs and called in _STARTING:
            yield from filter(_IN_COMMAND.search, _texts(node))
        counts = runs or called in _OF_LOADERS or (called in _OF_PATHS and not used)
        literal = [each.value for each in node.args[:1] if isinstance(each, ast.Constant)]
        if literal == [_FOLDER] and called in _OF_FOLDERS and counts:
            yield _FOLDER
        opens = isinstance(node.func, ast.Name) and called == "open"
        if opens or not counts:
            kept = (each for each in node.args if not isinstance(each, ast.Constant))
            for child in (node.func, *kept, *node.keywords):
                yield from _own_paths(child, runs=runs, used=not runs)
            return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _OWN_PATH.match(node.value):
            yield node.value
        return
    if isinstance(node, ast.keyword) and node.arg == "cwd":
        yield from (each for each in _texts(node) if each == _FOLDER)
    if runs and isinstance(node, ast.BinOp | ast.JoinedStr | ast.Call) and _names_current(node):
        yield from filter(_BELOW.search, _texts(node))
    for child in ast.iter_child_nodes(node):
        yield from _own_paths(child, runs=runs, used=used)


def _called(node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else node
    return getattr(func, "attr", getattr(func, "id", ""))


def _names_current(node: ast.AST) -> bool:
    return any(_called(each) in _CURRENT for each in ast.walk(node) if isinstance(each, ast.Call))


def _texts(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _imported(tree: ast.Module) -> dict[str, str]:
    """Map names in the file to their origins: ``o`` to ``os``, ``leave`` to ``os._exit``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


@dataclass(frozen=True)
class Files:
    """Paths as the function names them, sorted."""

    read: tuple[str, ...]
    written: tuple[str, ...]


def files(runs: Sequence[HandlerRun]) -> Files:
    """Return the files that most of `runs` opened; names made up for one run are in no other.

    A function that looks for a file finds it if another function has written it. A file in a
    temporary folder was written by the function in an earlier run, as a cache. There, two functions
    may use equal names numbered by the time or the process: a star replaces the number. If the
    names differ in each run, the folder is reported.
    """
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for run in runs:
        calls = [call for strand in run.strands for call in strand.calls]
        done = [call for call in calls if not call.failed]
        absent = [call for call in calls if call.result.startswith("-1 ENOENT")]
        looked = {*_looked_for(absent), *filter(_is_temporary, _looked_for(done))}
        read.update(_and_numbered([*_read(done), *_read(absent), *looked]))
        written.update(_and_numbered([*_written(done), *filter(_is_temporary, _read(done))]))
        folders.update({_any_of(path) for path in _written(done) if _is_temporary(path)})
    known = _common(written, len(runs))
    unnamed = {*_common(folders, len(runs))} - {_any_of(path) for path in known}
    return Files(_common(read, len(runs)), tuple(sorted({*known, *unnamed})))


def _any_of(path: str) -> str:
    """Return the placeholder for any file in the folder of `path`."""
    return str(PurePosixPath(path).with_name(ANY_NAME))


def _is_temporary(path: str) -> bool:
    return path.startswith(_TEMPORARY) and not path.startswith(f"{sys.prefix}/")


def _and_numbered(paths: Iterable[str]) -> set[str]:
    """Return `paths`, and the names of temporary files with each number replaced by a star."""
    paths = set(paths)
    return paths | {_starred(path) for path in paths if _is_temporary(path)}


def _starred(path: str) -> str:
    return _NUMBER.sub("*", path)


def _common(counts: Counter[str], runs: int) -> tuple[str, ...]:
    found = {path for path, count in counts.items() if 2 * count > runs}
    alike = (path for path in found if _NUMBER.search(path) and not _OF_PROCESS.search(path))
    return tuple(sorted(found - set(map(_starred, alike))))


def _read(calls: Iterable[Call]) -> Iterable[str]:
    for call in calls:
        if call.name in _OPENING and call.name != "creat" and "O_WRONLY" not in call.arguments:
            yield from _paths(call)


def _looked_for(calls: Iterable[Call]) -> Iterable[str]:
    for call in calls:
        if call.name in LOOKING:
            yield from _paths(call)


def _written(calls: Iterable[Call]) -> Iterable[str]:
    for call in calls:
        opens = call.name in _OPENING and _WRITING_FLAGS.search(call.arguments)
        binds = call.name == "bind" and "sun_path=" in call.arguments
        if opens or binds or call.name == "creat" or call.name in _CHANGING:
            yield from _paths(call)
        elif call.name in LINKING:
            yield from list(_paths(call))[-1:]  # the new name


def _paths(call: Call) -> Iterable[str]:
    """Return the paths among the arguments, except of unnamed temporary files."""
    if "O_TMPFILE" in call.arguments:
        return ()
    return (path.rstrip("/") or "/" for path in _QUOTED.findall(call.arguments) if path)
