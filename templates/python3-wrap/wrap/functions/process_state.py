"""What a function changes of what its whole process shares, seen where it is changed.

A function that is profiled runs a few times under an `Observer`. It compares the state of the
process before and after each run, and watches some changes while they are made: many are taken
back before the run ends (``contextlib.redirect_stdout``). While the function's modules are
imported, the same is done. What an imported library changes while it is imported is no change of
the function's: the library would do so for any function.

Some of what an import sets can be taken back, and is where a wrap has other functions: it is set
again in those processes that run the function.

Reads of this state are not observed, and neither is what only the function's own thread or
context has.
"""

from __future__ import annotations

import ast
import contextlib
import contextvars
import gc
import importlib
import locale
import logging
import os
import re
import resource
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from wrap.functions.public import PACKAGE

_BOOTSTRAP: Any = importlib.import_module("_frozen_importlib")
#: What the names in ``sys.modules`` of functions' packages begin with.
_FUNCTION = "_function_"
#: Packages and modules that are functions' own, or the wrap's.
_OURS = frozenset({PACKAGE, "wrap", "chiron_io", "__main__"})
#: Variables that change how fast libraries compute, and what they write to the log: a function
#: that shares the process answers the same.
_TUNING = re.compile(
    r"(OMP|MKL|OPENBLAS|BLIS|GOTO|VECLIB|NUMEXPR|KMP|TF|XLA|TORCH|CUDA|GRPC|HF|TRANSFORMERS)_\w+"
    r"|TOKENIZERS_PARALLELISM|MPLCONFIGDIR|MPLBACKEND|PYTHONWARNINGS|NLTK_DATA|\w+_LOG_LEVEL"
)
_STANDARD = ("stdin", "stdout", "stderr")
_UMASK = re.compile(r"^Umask:\s*([0-7]+)$", re.MULTILINE)
_ENVIRONMENT = "os.environ"
_VARIABLE = f"{_ENVIRONMENT}["
#: So many environment variables are not named any more.
_MANY = 6


class Changes(NamedTuple):
    """What a function changes of what its process shares, each sorted.

    Attributes
    ----------
    in_runs
        When it runs.
    at_import
        When its own code is imported: where other functions are in the wrap this is taken back, and
        set again in processes that run the function.
    everywhere
        When its own code is imported, in all processes of its wrap: this cannot be taken back.
    """

    in_runs: list[str]
    at_import: list[str]
    everywhere: list[str]


class ProcessState:
    """What one function was seen to change.

    Parameters
    ----------
    folder
        Where its modules are.
    alone
        Whether its wrap has no other function. Then all that its import changes is looked for, as
        a function is profiled so; else what can be set again, which takes a tenth of the time.

    Attributes
    ----------
    waits
        Whether what its import set is still to be set again in this process.
    """

    def __init__(self, folder: Path | None = None, *, alone: bool = True) -> None:
        self.waits = False
        self._folder = folder
        self._alone = alone
        self._in_runs, self._at_import = set[str](), set[str]()
        #: What its import set: the values before and after.
        self._set: dict[str, tuple[Any, Any]] = {}
        self._setting = threading.Lock()
        #: The states of generators of random numbers that runs left, with those that they found.
        self._left: dict[tuple[str, int], int] = {}

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """A block that imports the function's modules."""
        with Observer(self._folder, settings_only=not self._alone) as seen:
            yield
        self._set = seen.settings
        if self._alone:
            self._at_import |= seen.found | _replaced(_named())

    def take_back(self) -> None:
        """Set what the function's import has set as it was, until `set_again`.

        Generators of random numbers that the process shares begin anew: a seed would be that of
        every function, and in forked processes of every request.
        """
        for name, (before, _) in self._set.items():
            _assign(name, before)
        for module, _, reseed in _GENERATORS.values():
            if loaded := sys.modules.get(module):
                reseed(loaded)
        self.waits = bool(self._set)

    def set_again(self) -> None:
        """Set what the function's import had set: this process runs the function."""
        with self._setting:
            if self.waits:
                for name, (_, after) in self._set.items():
                    _assign(name, after)
                self.waits = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A block that runs the function."""
        found, replaced = _generators(draw=True), _replaced(_modules())
        with Observer(self._folder) as seen:
            yield
        self._in_runs |= seen.found | (_replaced(_modules()) - replaced)
        for name, state in _generators().items():
            before = found.get(name)
            same = before is None or state == before
            if not same and self._left.setdefault((name, state), before or 0) != before:
                self._in_runs.add(name)

    @property
    def changes(self) -> Changes:
        """What it was seen to change so far."""
        at_import = self._at_import - _SEEDS
        taken_back = {each for each in at_import if each in _SET or each.startswith(_VARIABLE)}
        everywhere = at_import - taken_back
        return Changes(*map(_sorted, (self._in_runs, taken_back, everywhere)))


def _sorted(found: set[str]) -> list[str]:
    """Many environment variables are the environment."""
    variables = {name for name in found if name.startswith(_VARIABLE)}
    return sorted(found if len(variables) < _MANY else found - variables | {_ENVIRONMENT})


def _assign(name: str, value: Any) -> None:
    """Set a part of the state, or leave it where that is impossible, as the log then says."""
    try:
        if name in _SET:
            _SET[name](value)
        elif value is None:
            os.environ.pop(_variable_of(name), None)
        else:
            os.environ[_variable_of(name)] = value
    except Exception as error:
        print(f"{name} cannot be set to {value!r}: {type(error).__name__}: {error}")


class Observer:
    """Finds what a block changes; nothing where another observer is at work.

    Parameters
    ----------
    folder
        The function's own.
    settings_only
        Whether only `settings` are wanted.

    Attributes
    ----------
    found
        The names of what was changed, as `module.name`, where the block has ended.
    settings
        The values before and after of those parts that can be set again.
    """

    def __init__(self, folder: Path | None = None, *, settings_only: bool = False) -> None:
        self.found = set[str]()
        self._settings_only = settings_only
        self.settings: dict[str, tuple[Any, Any]] = {}
        self._folder = folder
        self._before: dict[str, Any] = {}
        self._importing = threading.local()
        self._watched = set[str]()
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Observer:
        global _observer
        if not _at_work.acquire(blocking=False):
            return self
        if not self._settings_only:
            _audit_once()
        self._replace(_BOOTSTRAP, "_find_and_load", self._loading)
        self._look()
        _observer = self
        return self

    def __exit__(self, *_: object) -> None:
        global _observer
        if _observer is not self:
            return
        _observer = None
        self._compare()
        for undo in reversed(self._undo):
            undo()
        _at_work.release()

    @property
    def is_importing(self) -> bool:
        """Whether this thread imports a library now."""
        return getattr(self._importing, "now", False)

    def _compare(self) -> None:
        """Add what has changed since the last snapshot."""
        try:
            after = self._snapshot()
            self.found |= changed(self._before, after, self._folder)
            for name, (before, now) in _settings(self._before, after).items():
                first, _ = self.settings.get(name, (before, now))
                self.settings[name] = (first, now)
        except Exception as error:  # objects of libraries may do anything when they are looked at
            print(f"not all changes of the process can be found: {type(error).__name__}: {error}")

    def _loading(self, original: Callable[..., Any], name: str, *more: Any) -> Any:
        """Leave out what a library changes in the course of its import."""
        if self.is_importing or _is_ours(name) or _observer is not self:
            return original(name, *more)
        self._compare()
        self._importing.now = True
        try:
            return original(name, *more)
        finally:
            self._importing.now = False
            self._look()

    def _look(self) -> None:
        if not self._settings_only:
            self._watch_modules()
        self._before = self._snapshot()

    def _snapshot(self) -> dict[str, Any]:
        if self._settings_only:
            return {name: _ALWAYS[name]() for name in (*_SET, _ENVIRONMENT)}
        return snapshot()

    def _watch_modules(self) -> None:
        """Watch what is set in modules, those imported since the last time too."""
        for name, module in list(sys.modules.items()):
            if name in self._watched or _is_ours(name):
                continue
            self._watched.add(name)
            if type(module) is not ModuleType:
                continue
            for call, concerns in _SETTERS.get(name, {}).items():
                if hasattr(module, call):
                    label = f"{name.lstrip('_')}.{call.lstrip('_')}"
                    self._replace(module, call, partial(self._set, label, concerns))
            with contextlib.suppress(TypeError):
                ModuleType.__setattr__(module, "__class__", _Watched)
                self._undo.append(partial(ModuleType.__setattr__, module, "__class__", ModuleType))

    def _replace(self, module: Any, name: str, instead: Callable[..., Any]) -> None:
        names = vars(module)
        original = names[name]
        names[name] = replacement = partial(instead, original)

        def undo() -> None:
            if names.get(name) is replacement:
                names[name] = original

        self._undo.append(undo)

    def _set(
        self,
        label: str,
        concerns: Callable[..., bool],
        original: Callable[..., Any],
        *arguments: Any,
        **options: Any,
    ) -> Any:
        value = original(*arguments, **options)
        if _observer is self and not self.is_importing and concerns(*arguments, **options):
            self.found.add(label)
        return value

    def assigned(self, module: ModuleType, name: str, frame: FrameType, *value: Any) -> None:
        """Note that the code of `frame` sets ``module.name``, or deletes it."""
        if self.is_importing or name.startswith(("__", "last_")):
            return
        if value and vars(module).get(name) is value[0]:
            return
        setter, whole = _module_of(frame), f"{module.__name__}.{name}"
        if module is warnings and setter == "warnings":  # it is ``catch_warnings``
            # Libraries do so for moments, in which others lose no more than a line of the log.
            if frame.f_back is not None and _is_ours(_module_of(frame.f_back)):
                if name == "_showwarnmsg_impl":
                    self.found.add("warnings.catch_warnings")
                elif name == "filters" and _raising() != self._before["warnings.filterwarnings"]:
                    self.found.add("warnings.filterwarnings")
        elif whole in _COMPARED or (setter == "logging" and module is warnings):
            return
        elif setter.partition(".")[0] != module.__name__.partition(".")[0]:
            self.found.add(whole)

    def variable(self, name: str, value: str | None) -> None:
        """Note that an environment variable gets a value, or None for no longer any."""
        if not self.is_importing and os.environ.get(name) != value and _is_told(name):
            self.found.add(_named_variable(name))


_observer: Observer | None = None
_at_work = threading.Lock()


class _Watched(ModuleType):
    """A module while what is set in it is observed."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """A module as ever: the import system creates them by the type of ``sys``."""
        return ModuleType(*arguments, **options)

    def __setattr__(self, name: str, value: Any) -> None:
        if _observer is not None:
            _observer.assigned(self, name, sys._getframe(1), value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if _observer is not None:
            _observer.assigned(self, name, sys._getframe(1))
        super().__delattr__(name)


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _observer is None:
        return
    if event == "os.putenv":
        _observer.variable(os.fsdecode(arguments[0]), os.fsdecode(arguments[1]))
    elif event == "os.unsetenv":
        _observer.variable(os.fsdecode(arguments[0]), None)
    elif event == "os.chdir" and not _observer.is_importing:
        _observer.found.add("os.chdir")


_audited = False


def _audit_once() -> None:
    """Have `_audit` see events from now on: it cannot be removed again."""
    global _audited
    if not _audited:
        sys.addaudithook(_audit)
        _audited = True


def _named_variable(name: str) -> str:
    return f"{_VARIABLE}{name!r}]"


def _variable_of(named: str) -> str:
    return str(ast.literal_eval(named.removeprefix(_VARIABLE).removesuffix("]")))


def _is_told(variable: str) -> bool:
    return _TUNING.fullmatch(variable) is None


def _always(*_arguments: Any, **_options: Any) -> bool:
    return True


def _given(value: Any = None, *_arguments: Any, **_options: Any) -> bool:
    return value is not None


def _second(_first: Any = None, value: Any = None, *_arguments: Any, **_options: Any) -> bool:
    return value is not None


#: Calls that change what the process shares, by module, and with which arguments they do. Only what
#: is back as it was at the end of a run needs them.
_SETTERS: Mapping[str, Mapping[str, Callable[..., bool]]] = {
    "os": {"umask": _always, "nice": _always, "setpriority": _always},
    "sys": {"setrecursionlimit": _always, "setswitchinterval": _always},
    "threading": {"settrace": _always, "setprofile": _always, "stack_size": _given},
    "gc": {"disable": _always, "set_threshold": _always, "set_debug": _always},
    "locale": {"_setlocale": _second},
    "time": {"tzset": _always},
    "signal": {"signal": _always, "setitimer": _always, "alarm": _always},
    "resource": {"setrlimit": _always},
    "logging": {"disable": _always, "setLoggerClass": _always, "setLogRecordFactory": _always},
    "socket": {"setdefaulttimeout": _always},
    "random": {"seed": _given, "setstate": _always},
    "numpy.random": {"seed": _given, "set_state": _always},
    "torch": {"manual_seed": _always, "set_default_dtype": _always, "set_num_threads": _always},
    "csv": {"field_size_limit": _given},
    "codecs": {"register": _always},
    "mimetypes": {"add_type": _always},
    "copyreg": {"pickle": _always},
    "urllib.request": {"install_opener": _always},
    "xml.etree.ElementTree": {"register_namespace": _always},
    "matplotlib.pyplot": {"figure": _always},
    "matplotlib": {"use": _always},
}


#: What assignments to modules need not be watched for.
_COMPARED = frozenset({"sys.path", "sys.argv", "sys.meta_path", "warnings.filters"})


def snapshot() -> dict[str, Any]:
    """The state that all of the process shares, by what changes it."""
    found = {name: get() for name, get in _ALWAYS.items()}
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
    """The names of what of `before` is another in `after`.

    That `folder`, the function's own, is searched for modules changes nothing for another function.
    """
    found = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    if _ENVIRONMENT in found:
        names = map(_variable_of, _settings(before, after).keys() - _SET.keys())
        found = found - {_ENVIRONMENT} | {_named_variable(name) for name in names if _is_told(name)}
    if "sys.path" in found and folder is not None:
        here = str(folder.resolve())
        added = [each for each in after["sys.path"] if not _is_below(each, here)]
        if added == [each for each in before["sys.path"] if not _is_below(each, here)]:
            found.discard("sys.path")
    return found


def _settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What can be set again, each environment variable by itself, before and after."""
    found = {name: (before[name], after[name]) for name in _SET if before[name] != after[name]}
    old, new = before[_ENVIRONMENT], after[_ENVIRONMENT]
    for name in old.keys() | new.keys() if old != new else ():
        if old.get(name) != new.get(name):
            found[_named_variable(name)] = (old.get(name), new.get(name))
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
    """The modules that no import has made."""
    modules = list(sys.modules.items())
    return {
        name
        for name, each in modules
        if "." not in name and not _is_ours(name) and getattr(each, "__spec__", None) is None
    }


def _umask() -> int:
    """The mask, without setting it, which other threads would see."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(_UMASK.findall(status)[0], 8)


def _file(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_ours(module: str) -> bool:
    return module.startswith(_FUNCTION) or module.partition(".")[0] in _OURS


def _attributes(stream: object) -> list[tuple[str, int]]:
    """What handlers set in a stream of the wrap's, as ``sys.stdout.write = ...`` does."""
    own = getattr(stream, "__dict__", {})
    return [(name, id(value)) for name, value in own.items() if callable(value)]


def _root_logger() -> tuple[bool, list[int]]:
    """Whether it keeps warnings out of the log, and handlers that write to no standard stream.

    Other levels and handlers change only what the log says.
    """
    streams = {getattr(sys, name) for each in _STANDARD for name in (each, f"__{each}__")}
    handlers = [
        id(handler)
        for handler in logging.root.handlers
        if not (type(handler) is logging.StreamHandler and handler.stream in streams)
    ]
    return logging.root.level > logging.WARNING, handlers


def _raising() -> list[str]:
    """The filters that turn warnings into errors; others change only what the log says."""
    return [repr(each) for each in warnings.filters if each[0] == "error"]


def _policy(asyncio: Any) -> str:
    policy = asyncio.events._event_loop_policy
    default = policy is None or type(policy) is asyncio.DefaultEventLoopPolicy
    return "" if default else repr(type(policy))


def _afresh(call: Callable[[], Any]) -> Any:
    """What `call` returns where the context of this thread has set nothing."""
    return contextvars.Context().run(call)


def _parameters(matplotlib: Any) -> list[tuple[str, str]]:
    """Without the backend, which is found when it is first needed."""
    parameters = dict.items(matplotlib.rcParams)
    return [(name, repr(value)) for name, value in parameters if not name.startswith("backend")]


def _generators(*, draw: bool = False) -> dict[str, int]:
    """The states of the generators of random numbers that the process shares.

    With `draw`, after a number was drawn, as another function may: the states of two runs differ
    then, unless the function seeds the generator.
    """
    found = {}
    for name, (module, state, _) in _GENERATORS.items():
        if loaded := sys.modules.get(module):
            with contextlib.suppress(AttributeError):  # still being imported
                if draw:
                    _DRAWS[name](loaded)
                found[name] = state(loaded)
    return found


def _modules() -> Iterator[ModuleType]:
    """Those that are no function's and not the wrap's."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not _is_ours(name):
            yield module


def _named() -> Iterator[ModuleType]:
    """The modules of functions, what these have imported by a name, and the modules below it."""
    for own in [module for name, module in list(sys.modules.items()) if name.startswith(_FUNCTION)]:
        yield own
        for imported in _modules_in(own):
            if not _is_ours(imported.__name__):
                yield imported
                for below in _modules_in(imported):
                    if below.__name__.startswith(f"{imported.__name__}."):
                        yield below


def _modules_in(module: ModuleType) -> list[ModuleType]:
    return [value for value in list(vars(module).values()) if isinstance(value, ModuleType)]


def _replaced(modules: Iterable[ModuleType]) -> set[str]:
    """The methods of classes in `modules` that are a function's own code."""
    found = set()
    classes = {id(value): value for module in modules for value in _classes_of(module)}
    for each in classes.values():
        for name, value in list(vars(each).items()):
            if isinstance(value, FunctionType):
                by = value.__globals__.get("__name__", "")
                if by == PACKAGE or str(by).startswith(f"{PACKAGE}."):
                    found.add(f"{each.__module__}.{each.__qualname__}.{name}")
    return found


def _classes_of(module: ModuleType) -> list[type]:
    values = list(vars(module).values())
    classes = [value for value in values if isinstance(value, type)]
    return [each for each in classes if not _is_ours(str(each.__module__))]


#: For each generator its module, and what returns its state and seeds it with fresh entropy.
_GENERATORS: Mapping[str, tuple[str, Callable[[Any], int], Callable[[Any], Any]]] = {
    "random.seed": (
        "random",
        lambda random: hash(random.getstate()),
        lambda random: random.seed(),
    ),
    "numpy.random.seed": (
        "numpy.random",
        lambda random: hash(tuple(map(bytes, random.get_state()[1:2])) + random.get_state()[2:]),
        lambda random: random.seed(),
    ),
    "torch.manual_seed": (
        "torch",
        lambda torch: hash(bytes(torch.get_rng_state().tolist())),
        lambda torch: torch.seed(),
    ),
}
_DRAWS: Mapping[str, Callable[[Any], Any]] = {
    "random.seed": lambda random: random.random(),
    "numpy.random.seed": lambda random: random.random_sample(),
    "torch.manual_seed": lambda torch: torch.rand(1),
}
#: A seed at the import is replaced: see `ProcessState.take_back`.
_SEEDS = frozenset({*_GENERATORS, "random.setstate", "numpy.random.set_state"})
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
#: The state that is always there, by what changes it.
_ALWAYS: Mapping[str, Callable[[], Any]] = {
    _ENVIRONMENT: lambda: dict(os.environ),
    "os.chdir": _folder,
    "os.umask": _umask,
    "os.nice": lambda: os.getpriority(os.PRIO_PROCESS, 0),
    "os.sched_setaffinity": lambda: os.sched_getaffinity(0),
    "os.setuid": lambda: (os.getresuid(), os.getresgid()),
    "os.dup2": lambda: [_file(number) for number in range(3)],
    "sys.path": lambda: tuple(sys.path),
    "sys.argv": lambda: tuple(sys.argv),
    "sys.meta_path": lambda: len([f for f in sys.meta_path if not _is_ours(type(f).__module__)]),
    "sys.modules": lambda: _made_modules(),
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
    "logging.root": _root_logger,
    "socket.setdefaulttimeout": socket.getdefaulttimeout,
    "warnings.filterwarnings": _raising,
}
#: By what has to be imported, and left out before.
_WHERE_IMPORTED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "decimal": {"decimal.DefaultContext": lambda decimal: repr(decimal.DefaultContext)},
    "csv": {"csv.field_size_limit": lambda csv: csv.field_size_limit()},
    "copyreg": {"copyreg.pickle": lambda copyreg: len(copyreg.dispatch_table)},
    "asyncio": {"asyncio.set_event_loop_policy": lambda asyncio: _policy(asyncio)},
    "sqlite3": {
        "sqlite3.register_adapter": lambda sqlite3: len(sqlite3.adapters),
        "sqlite3.register_converter": lambda sqlite3: len(sqlite3.converters),
    },
    "numpy": {"numpy.set_printoptions": lambda numpy: repr(_afresh(numpy.get_printoptions))},
    "pandas._config.config": {"pandas.set_option": lambda config: repr(config._global_config)},
    "matplotlib": {"matplotlib.rcParams": lambda matplotlib: _parameters(matplotlib)},
    "matplotlib._pylab_helpers": {"matplotlib.pyplot.figure": lambda them: list(them.Gcf.figs)},
    "xml.etree.ElementTree": {
        "xml.etree.ElementTree.register_namespace": lambda tree: repr(tree._namespace_map)
    },
}
#: What sets a part of the state to a value that it had.
_SET: Mapping[str, Callable[[Any], Any]] = {
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
    "socket.setdefaulttimeout": socket.setdefaulttimeout,
}
