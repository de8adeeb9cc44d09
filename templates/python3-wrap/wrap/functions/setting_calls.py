"""The calls that change process-wide state: comparing snapshots misses what is undone in a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from wrap.functions.snapshot import heard, is_ours, patched


def _always(*_arguments: Any, **_options: Any) -> bool:
    return True


def _given(value: Any = None, *_arguments: Any, **_options: Any) -> bool:
    return value is not None


def _any(*arguments: Any, **options: Any) -> bool:
    return any(value is not None for value in (*arguments, *options.values()))


def _second(_first: Any = None, value: Any = None, *_arguments: Any, **_options: Any) -> bool:
    return value is not None


def _without_arguments(*arguments: Any, **options: Any) -> bool:
    return not (arguments or options)


def _third(_first: Any, _second: Any, *value: Any) -> bool:
    return bool(value)


def _of_library(target: Any = None, *_arguments: Any, **_options: Any) -> bool:
    """Whether the first argument is a library's class or module, which all functions share."""
    name = getattr(target, "__name__" if isinstance(target, ModuleType) else "__module__", "")
    return isinstance(target, type | ModuleType) and not is_ours(str(name))


def _writes(query: Any = "", *_arguments: Any, **_options: Any) -> bool:
    """Whether a query of SQL does more than read."""
    return not _READS.match(query) if isinstance(query, str) else True


def _is_named(database: Any = "", *_arguments: Any, **_options: Any) -> bool:
    """Whether the whole process shares the in-memory database of this name."""
    return str(database).startswith((":default:", ":memory:")) and database != ":memory:"


#: The first words of SQL queries that only read.
_READS = re.compile(r"\s*(\(*(select|with|from|values)|describe|explain|show|summarize)\b", re.I)
#: Module -> its functions that change process-wide state -> whether a call with these arguments
#: does.
CALLS: Mapping[str, Mapping[str, Callable[..., bool]]] = {
    "os": dict.fromkeys(("umask", "nice", "setpriority", "register_at_fork"), _always),
    "sys": dict.fromkeys(
        ("setrecursionlimit", "setswitchinterval", "addaudithook", "set_int_max_str_digits"),
        _always,
    ),
    "faulthandler": dict.fromkeys(("dump_traceback_later", "register"), _always),
    "threading": {"settrace": _always, "setprofile": _always, "stack_size": _given},
    "gc": {"disable": _always, "set_threshold": _always, "set_debug": _always},
    "tracemalloc": {"stop": _always},
    "locale": {"_setlocale": _second, "textdomain": _given, "bindtextdomain": _second},
    "time": {"tzset": _always},
    "signal": {"signal": _always, "setitimer": _always, "alarm": _always},
    "resource": {"setrlimit": _always, "prlimit": _third},
    "logging": {
        **dict.fromkeys(("disable", "setLoggerClass", "setLogRecordFactory"), _always),
        "shutdown": _without_arguments,  # `logging.config` calls it with handlers
    },
    "socket": {"setdefaulttimeout": _always},
    "random": {"seed": _given, "setstate": _always},
    "numpy.random": {"seed": _given, "set_state": _always},
    "torch": {"manual_seed": _always, "set_default_dtype": _always, "set_num_threads": _always},
    "csv": {
        **dict.fromkeys(("register_dialect", "unregister_dialect"), _always),
        "field_size_limit": _given,
    },
    "codecs": {"register": _always, "register_error": _always},
    "mimetypes": {"add_type": _always, "init": _any},
    "zoneinfo": {"reset_tzpath": _any},
    "gettext": {"textdomain": _given, "bindtextdomain": _second},
    "shutil": {
        f"{verb}_{kind}_format": _always
        for verb in ("register", "unregister")
        for kind in ("archive", "unpack")
    },
    "email.charset": {"add_alias": _always, "add_charset": _always, "add_codec": _always},
    "calendar": {"setfirstweekday": _always},
    "copyreg": {"pickle": _always, "add_extension": _always},
    "importlib": {"reload": _of_library},
    "urllib.request": {"install_opener": _always},
    "xml.etree.ElementTree": {"register_namespace": _always},
    "rich": {"reconfigure": _always},
    "matplotlib.pyplot": {"figure": _always},
    "matplotlib": {"use": _always, "rc_context": _always},
    "matplotlib.style": {"context": _always},
    "pandas": {"option_context": _always},
    "scipy.special": {"seterr": _any, "errstate": _always},
    "sqlalchemy.event": {"listen": _of_library},
    "sqlalchemy.event.api": {"listen": _of_library},
    "duckdb": {
        **dict.fromkeys(("execute", "executemany", "query", "sql"), _writes),
        **dict.fromkeys(("cursor", "default_connection", "register", "unregister"), _always),
        "connect": _is_named,
    },
}
#: Module -> a class, its method whose calls change process-wide state, and the name of the change.
METHODS: Mapping[str, tuple[str, str, Callable[..., str]]] = {
    "logging": ("Logger", "addHandler", heard),
    "unittest.mock": ("_patch", "__enter__", patched),
}
