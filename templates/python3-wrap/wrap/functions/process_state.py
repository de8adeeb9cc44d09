"""The changes that a function makes to process-wide state.

Profiling imports and runs a function under an `Observer`, which compares the process before and
after. It also watches calls, as many changes are undone before a run ends
(``contextlib.redirect_stdout``). Changes by an imported library do not count: the library would
make them for any function.

If a wrap has other functions, changes by an import are undone where possible. They are made again
in each process that runs the function.

Reads are not observed, nor is state of the function's own thread or context.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wrap.functions import leftovers
from wrap.functions.observer import Observer
from wrap.functions.public import folders, package_at
from wrap.functions.random_state import SEEDS, generators, reseed_all
from wrap.functions.replaced import methods_replaced, modules, named_modules, registries
from wrap.functions.snapshot import ENVIRONMENT, FILTERS, SETTERS, STATE, VARIABLE, assign
from wrap.workers.reaper import adopt_orphans

#: Lists to which several functions of a process may add.
_LISTS = ("sys.path", FILTERS)
#: From this number on, changed environment variables are not named one by one.
_MANY = 6


class Changes(NamedTuple):
    """The names of process-wide state that a function changes, each list sorted."""

    #: Changed by its runs.
    in_runs: list[str]
    #: Changed by the import of its code. A wrap with other functions undoes these changes, and
    #: makes them again in processes that run the function.
    at_import: list[str]
    #: Changed by the import of its code and impossible to undo: all processes of its wrap see them.
    everywhere: list[str]


class ProcessState:
    """The observed changes of one function.

    Args:
        alone: whether its wrap has no other function, as in profiling. Then every change by its
            import is detected; else only changes with a setter, in a tenth of the time.
    """

    def __init__(self, folder: Path | None = None, *, alone: bool = True) -> None:
        #: Whether the changes by its import still have to be made again in this process.
        self.waits = False
        self._folder = folder
        self._alone = alone
        self._in_runs, self._at_import = set[str](), set[str]()
        #: Name of a change by its import -> values before and after.
        self._set: dict[str, tuple[Any, Any]] = {}
        self._setting = threading.Lock()
        self._runs = 0
        #: Generator and its state after a run -> its state before that run.
        self._left: dict[tuple[str, int], int] = {}

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Observe a block that imports the function's modules."""
        with Observer(self._folder, settings_only=not self._alone) as seen:
            yield
        self._set = seen.settings
        if self._alone:
            replaced = methods_replaced(named_modules()) | registries()
            self._at_import |= seen.found | replaced

    def take_back(self) -> None:
        """Undo the changes of the function's import until `set_again`.

        Also reseeds the shared random generators. A seed set by the import would hold for every
        function, and in forked processes for every request.
        """
        for name, (before, _) in self._set.items():
            assign(name, before)
        if "sys.path" in self._set:
            before, after = self._set["sys.path"]
            self._set["sys.path"] = (before, [each for each in after if not _is_searched(each)])
        reseed_all()
        self.waits = bool(self._set)

    def set_again(self) -> None:
        """Make the changes of the function's import again: this process runs the function."""
        with self._setting:
            if self.waits:
                for name, (_, after) in self._set.items():
                    assign(name, _with_others(after, STATE[name]()) if name in _LISTS else after)
                self.waits = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Observe a block that runs the function."""
        self._runs += 1
        found, replaced = generators(draw=self._runs), _replaced()
        adopt_orphans()  # such as background jobs of a shell
        programs, daemons = leftovers.programs(), leftovers.daemons()
        with Observer(self._folder) as seen, leftovers.as_no_daemon():
            yield
        self._in_runs |= seen.found | (_replaced() - replaced)
        if leftovers.programs() - programs:
            self._in_runs.add(leftovers.RUN_ON)
        if leftovers.daemons() - daemons:
            self._in_runs.add(leftovers.THREADS_RUN_ON)
        for name, state in generators().items():
            before = found.get(name)
            same = before is None or state == before
            if not same and self._left.setdefault((name, state), before or 0) != before:
                self._in_runs.add(name)

    @property
    def changes(self) -> Changes:
        at_import = self._at_import - SEEDS
        taken_back = {each for each in at_import if each in SETTERS or each.startswith(VARIABLE)}
        everywhere = at_import - taken_back
        if leftovers.gil_enabled():
            everywhere.add(leftovers.GIL_ENABLED)
        return Changes(*map(_sorted, (self._in_runs, taken_back, everywhere)))


def _replaced() -> set[str]:
    """Return the places in libraries that refer to a function's own code."""
    return methods_replaced(modules()) | registries()


def _is_searched(place: str) -> bool:
    """Whether it is a folder below a function's own, which its namespace searches."""
    whole = Path(place).resolve()
    return package_at(place) is not None and whole.is_dir() and str(whole) not in folders()


def _with_others(own: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    """Return a function's `own` list with what other functions have added to it `now`."""
    return [*own, *(each for each in now if each not in own)]


def _sorted(found: set[str]) -> list[str]:
    """Sort; from `_MANY` environment variables on, name the environment instead."""
    variables = {name for name in found if name.startswith(VARIABLE)}
    return sorted(found if len(variables) < _MANY else found - variables | {ENVIRONMENT})
