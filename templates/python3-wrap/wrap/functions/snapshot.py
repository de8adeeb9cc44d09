"""Process-wide state: reads it, compares it, and sets it back to an earlier value."""

from __future__ import annotations

import ast
import contextlib
import contextvars
import gc
import locale
import logging
import os
import re
import resource
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from wrap.functions.public import SHARED

#: The prefix of functions' packages in ``sys.modules``.
FUNCTION = "_function_"
#: Packages and modules of the wrap.
_OURS = frozenset({"wrap", "chiron_io"})
#: Variables that change only the speed of libraries and their log, never another function's answer.
_TUNING = re.compile(
    r"(OMP|MKL|OPENBLAS|BLIS|GOTO|VECLIB|NUMEXPR|KMP|XLA|GRPC|TF_(CPP|ENABLE|GPU|NUM|XLA))_\w+"
    r"|TOKENIZERS_PARALLELISM|MPLCONFIGDIR|MPLBACKEND|PYTHONWARNINGS|\w+_(LOG_LEVEL|VERBOSITY)"
)
_STANDARD = ("stdin", "stdout", "stderr")
#: The child watchers that a policy of `asyncio` makes by itself, or none.
_WATCHERS = ("ThreadedChildWatcher", "PidfdChildWatcher", "NoneType")
_UMASK = re.compile(r"^Umask:\s*([0-7]+)$", re.MULTILINE)
#: A logger that stands for the loggers of other functions.
_LOGGER = logging.getLogger(FUNCTION)
ENVIRONMENT = "os.environ"
VARIABLE = f"{ENVIRONMENT}["
FILTERS = "warnings.filters"
#: All modules; a new one is no change.
_MODULES = "modules by name"


def named_variable(name: str) -> str:
    return f"{VARIABLE}{name!r}]"


def _variable_of(named: str) -> str:
    return str(ast.literal_eval(named.removeprefix(VARIABLE).removesuffix("]")))


def is_told(variable: str) -> bool:
    return _TUNING.fullmatch(variable) is None


def assign(name: str, value: Any) -> None:
    """Set one part of the state; a failure is logged and changes nothing."""
    try:
        if name in SETTERS:
            SETTERS[name](value)
        elif value is None:
            os.environ.pop(_variable_of(name), None)
        else:
            os.environ[_variable_of(name)] = value
    except Exception as error:
        print(f"{name} cannot be set to {value!r}: {type(error).__name__}: {error}")


def snapshot() -> dict[str, Any]:
    """Return the process-wide state: name of the call that changes it -> value."""
    found = {name: get() for name, get in STATE.items()}
    found[_MODULES] = {n: each for n, each in list(sys.modules.items()) if not is_ours(n)}
    for name in _STANDARD:
        found[f"sys.{name}"] = _attributes(getattr(sys, name, None))
    for module, parts in _WHERE_IMPORTED.items():
        loaded = sys.modules.get(module)
        for name, get in parts.items() if loaded is not None else ():
            with contextlib.suppress(AttributeError):  # still being imported, or another version
                found[name] = get(loaded)
    return found


def changed(
    before: Mapping[str, Any], after: Mapping[str, Any], folder: Path | None = None
) -> set[str]:
    """Return the names of the parts that differ between `before` and `after`.

    Searching the function's own `folder` for modules counts as no change for other functions.
    """
    compared = (before.keys() & after.keys()) - {FILTERS, _MODULES}  # filters change only the log
    found = {name for name in compared if before[name] != after[name]}
    modules = before.get(_MODULES, {})  # none where only settings are compared
    if any(after[_MODULES].get(name) is not each for name, each in modules.items()):
        found.add("sys.modules")  # one was removed or replaced
    if ENVIRONMENT in found:
        names = map(_variable_of, settings_changed(before, after).keys() - SETTERS.keys())
        found = found - {ENVIRONMENT} | {named_variable(name) for name in names if is_told(name)}
    if "sys.path" in found and folder is not None:
        here = str(folder.resolve())
        added = [each for each in after["sys.path"] if not _is_below(each, here)]
        if added == [each for each in before["sys.path"] if not _is_below(each, here)]:
            found.discard("sys.path")
    return found


def settings_changed(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return the differing parts that have a setter: name -> (before, after).

    Each environment variable is a part.
    """
    found = {name: (before[name], after[name]) for name in SETTERS if before[name] != after[name]}
    old, new = before[ENVIRONMENT], after[ENVIRONMENT]
    for name in old.keys() | new.keys() if old != new else ():
        if old.get(name) != new.get(name):
            found[named_variable(name)] = (old.get(name), new.get(name))
    return found


def _is_below(place: object, folder: str) -> bool:
    whole = os.path.realpath(os.fspath(place)) if isinstance(place, str | Path) else ""
    return f"{whole}/".startswith(f"{folder}/")


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:
        return None


def _made_modules() -> set[str]:
    """Return the modules made without an import, and those under another module's name."""
    modules = list(sys.modules.items())
    return {name for name, each in modules if not is_ours(name) and _is_made(name, each)}


def _is_made(name: str, module: object) -> bool:
    spec = getattr(module, "__spec__", None)
    if spec is None:
        return "." not in name
    return getattr(spec, "name", name) != name


def _umask() -> int:
    """Return the umask without setting it, which would affect other threads."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(_UMASK.findall(status)[0], 8)


def _file(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_ours(module: str) -> bool:
    top = module.partition(".")[0]
    return top.startswith(FUNCTION) or top in _OURS or top in SHARED


def _attributes(stream: object) -> list[tuple[str, int]]:
    """Return the callables that handlers set on a stream, as ``sys.stdout.write = ...`` does."""
    own = getattr(stream, "__dict__", {})
    return [(name, id(value)) for name, value in own.items() if callable(value)]


def _root_logger() -> tuple[bool, list[int]]:
    """Return whether the root logger drops warnings, and its handlers outside standard streams.

    Other levels and handlers change only the log. A filter may drop any record.
    """
    handlers = [id(handler) for handler in logging.root.handlers if takes_records(handler)]
    root = logging.root
    return root.level > logging.WARNING or root.disabled or bool(root.filters), handlers


def takes_records(handler: logging.Handler) -> bool:
    """Whether a handler writes to anything but a standard stream."""
    streams = {getattr(sys, name) for each in _STANDARD for name in (each, f"__{each}__")}
    return not (type(handler) is logging.StreamHandler and handler.stream in streams)


def heard(logger: logging.Logger, handler: logging.Handler) -> str:
    """Return the name of a logger whose new handler receives other functions' records, or "".

    Functions share loggers by name, except loggers named after their own modules. Records that go
    to a standard stream change only the log.
    """
    is_root = logger is logging.root
    if not is_root and isinstance(handler, logging.NullHandler):
        return ""
    if not takes_records(handler) or logger.name.partition(".")[0] in SHARED:
        return ""
    return "logging.root" if is_root else f"logging.getLogger({logger.name!r})"


def patched(patch: Any) -> str:
    """Return the name of the library attribute that a patch of `unittest.mock` sets, or ""."""
    target, name = patch.target, patch.attribute
    if isinstance(target, type):
        target = f"{target.__module__}.{target.__qualname__}"
    elif isinstance(target, ModuleType):
        target = target.__name__
    else:
        return ""
    return "" if is_ours(target) else f"{target}.{name}"


def raising() -> list[str]:
    """Return the filters that turn warnings into errors; other filters change only the log."""
    return [repr(each) for each in warnings.filters if each[0] == "error"]


def _start_method() -> str | None:
    """Return the start method of `multiprocessing`; None if it is not chosen or used yet."""
    get = getattr(sys.modules.get("multiprocessing"), "get_start_method", None)
    return None if get is None else get(allow_none=True)


def _set_start_method(method: str | None) -> None:
    sys.modules["multiprocessing"].set_start_method(method, force=True)


def _executable() -> str | None:
    """Return the program of spawned processes; None if `multiprocessing.spawn` is not imported."""
    return getattr(sys.modules.get("multiprocessing.spawn"), "_python_exe", None)


def _set_executable(program: str | None) -> None:
    sys.modules["multiprocessing.spawn"].set_executable(program)


def _level_names() -> list[dict[Any, Any]]:
    return [dict(logging._levelToName), dict(logging._nameToLevel)]


def _set_level_names(names: Sequence[Mapping[Any, Any]]) -> None:
    held: list[dict[Any, Any]] = [logging._levelToName, logging._nameToLevel]
    for each, its in zip(held, names, strict=True):
        each.clear()
        each.update(its)


def _set_filters(filters: Sequence[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    with warnings.catch_warnings():  # so that modules forget what the filters before let through
        pass


def _enable_loggers(disabled: bool) -> None:
    """Enable all loggers; leave them if `disabled`: such a function shares no process."""
    for each in () if disabled else list(logging.root.manager.loggerDict.values()):
        if isinstance(each, logging.Logger):
            each.disabled = False


def _policy(asyncio: Any) -> str:
    policy = asyncio.events._event_loop_policy
    default = policy is None or type(policy) is asyncio.DefaultEventLoopPolicy
    watcher = type(getattr(policy, "_watcher", None)).__name__
    return "" if default and watcher in _WATCHERS else f"{type(policy)} {watcher}"


def _afresh(call: Callable[[], Any]) -> Any:
    """Call with all context variables at their defaults."""
    return contextvars.Context().run(call)


def _parameters(matplotlib: Any) -> list[tuple[str, str]]:
    """Return the parameters without the backend, which matplotlib chooses lazily."""
    parameters = dict.items(matplotlib.rcParams)
    return [(name, repr(value)) for name, value in parameters if not name.startswith("backend")]


_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
#: State that always exists: name of the call that changes it -> how to read it.
STATE: Mapping[str, Callable[[], Any]] = {
    ENVIRONMENT: lambda: dict(os.environ),
    "os.chdir": _folder,
    "os.umask": _umask,
    "os.nice": lambda: [os.getpriority(os.PRIO_PROCESS, thread) for thread in (0, os.getpid())],
    "os.sched_setaffinity": lambda: os.sched_getaffinity(0),
    "os.setuid": lambda: (os.getresuid(), os.getresgid()),
    "os.dup2": lambda: [_file(number) for number in range(3)],
    "sys.path": lambda: tuple(sys.path),
    "sys.argv": lambda: tuple(sys.argv),
    "sys.meta_path": lambda: len([f for f in sys.meta_path if not is_ours(type(f).__module__)]),
    "sys.path_hooks": lambda: len(sys.path_hooks),
    "sys.setdlopenflags": sys.getdlopenflags,
    "sys.set_asyncgen_hooks": lambda: tuple(sys.get_asyncgen_hooks()),
    "sys.set_coroutine_origin_tracking_depth": sys.get_coroutine_origin_tracking_depth,
    "sys.modules": lambda: _made_modules(),
    "__main__": lambda: {name: id(each) for name, each in vars(sys.modules["__main__"]).items()},
    "sys.settrace": sys.gettrace,
    "sys.setprofile": sys.getprofile,
    "sys.setrecursionlimit": sys.getrecursionlimit,
    "sys.setswitchinterval": sys.getswitchinterval,
    "sys.set_int_max_str_digits": sys.get_int_max_str_digits,
    "gc.disable": gc.isenabled,
    "gc.set_threshold": gc.get_threshold,
    "locale.setlocale": lambda: locale.setlocale(locale.LC_ALL),
    "time.tzset": lambda: (time.tzname, time.timezone),
    "signal.signal": lambda: [signal.getsignal(n) for n in signal.valid_signals()],
    "signal.pthread_sigmask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
    "resource.setrlimit": lambda: [resource.getrlimit(n) for n in _LIMITS],
    "logging.disable": lambda: logging.root.manager.disable,
    "logging.addLevelName": _level_names,
    "logging.config": lambda: _LOGGER.disabled,
    "logging.root": _root_logger,
    "multiprocessing.set_start_method": _start_method,
    "multiprocessing.set_executable": _executable,
    "socket.setdefaulttimeout": socket.getdefaulttimeout,
    "warnings.filterwarnings": raising,
    FILTERS: lambda: list(warnings.filters),
}
#: State of modules that may not be imported: module -> name of the call -> how to read it.
_WHERE_IMPORTED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "csv": {"csv.field_size_limit": lambda csv: csv.field_size_limit()},
    "copyreg": {"copyreg.pickle": lambda copyreg: len(copyreg.dispatch_table)},
    "asyncio": {"asyncio.set_event_loop_policy": lambda asyncio: _policy(asyncio)},
    "sqlite3": {
        "sqlite3.register_adapter": lambda sqlite3: len(sqlite3.adapters),
        "sqlite3.register_converter": lambda sqlite3: len(sqlite3.converters),
    },
    "decimal": {"decimal.DefaultContext.traps": lambda decimal: repr(decimal.DefaultContext.traps)},
    "numpy": {"numpy.set_printoptions": lambda numpy: repr(_afresh(numpy.get_printoptions))},
    "torch": {"torch.set_grad_enabled": lambda torch: torch.is_grad_enabled()},
    "prometheus_client.registry": {
        "prometheus_client.REGISTRY": lambda of: sorted(of.REGISTRY._names_to_collectors)
    },
    "scipy.special._ufuncs": {"scipy.special.seterr": lambda ufuncs: repr(ufuncs.geterr())},
    "sklearn": {"sklearn.set_config": lambda sklearn: repr(sklearn.get_config())},
    "pandas._config.config": {"pandas.set_option": lambda config: repr(config._global_config)},
    "matplotlib": {
        "matplotlib.rcParams": lambda matplotlib: _parameters(matplotlib),
        "matplotlib.colormaps": lambda matplotlib: sorted(matplotlib.colormaps),
    },
    "matplotlib._pylab_helpers": {"matplotlib.pyplot.figure": lambda them: list(them.Gcf.figs)},
    "xml.etree.ElementTree": {
        "xml.etree.ElementTree.register_namespace": lambda tree: repr(tree._namespace_map)
    },
}
#: Name of a part of the state -> how to set it to an earlier value.
SETTERS: Mapping[str, Callable[[Any], Any]] = {
    "os.chdir": os.chdir,
    "os.umask": os.umask,
    "sys.path": lambda places: sys.path.__setitem__(slice(None), places),
    "sys.argv": lambda arguments: sys.argv.__setitem__(slice(None), arguments),
    "sys.setrecursionlimit": sys.setrecursionlimit,
    "sys.setswitchinterval": sys.setswitchinterval,
    "sys.set_int_max_str_digits": sys.set_int_max_str_digits,
    "gc.disable": lambda enabled: gc.enable() if enabled else gc.disable(),
    "gc.set_threshold": lambda thresholds: gc.set_threshold(*thresholds),
    "locale.setlocale": lambda value: locale.setlocale(locale.LC_ALL, value),
    "logging.disable": logging.disable,
    "logging.addLevelName": _set_level_names,
    "logging.config": _enable_loggers,
    "multiprocessing.set_start_method": _set_start_method,
    "multiprocessing.set_executable": _set_executable,
    "socket.setdefaulttimeout": socket.setdefaulttimeout,
    FILTERS: _set_filters,
}
