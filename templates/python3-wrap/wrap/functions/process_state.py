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

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wrap.functions import leftovers
from wrap.functions.observer import Observer
from wrap.functions.public import folders, package_at
from wrap.functions.random_state import SEEDS, generators, reseed_all
from wrap.functions.replaced import methods_replaced, modules, named_modules, registries
from wrap.functions.snapshot import ENVIRONMENT, SETTERS, VARIABLE, assign
from wrap.workers.reaper import adopt_orphans

#: So many environment variables are not named any more.
_MANY = 6


class Changes(NamedTuple):
    """What a function changes of what its process shares, each sorted."""

    #: When it runs.
    in_runs: list[str]
    #: When its own code is imported: where other functions are in the wrap this is taken back, and
    #: set again in processes that run the function.
    at_import: list[str]
    #: When its own code is imported, in all processes of its wrap: this cannot be taken back.
    everywhere: list[str]


class ProcessState:
    """What one function was seen to change.

    Args:
        folder: where its modules are.
        alone: whether its wrap has no other function. Then all that its import changes is looked
            for, as a function is profiled so; else what can be set again, which takes a tenth of
            the time.
    """

    def __init__(self, folder: Path | None = None, *, alone: bool = True) -> None:
        #: Whether what its import set is still to be set again in this process.
        self.waits = False
        self._folder = folder
        self._alone = alone
        self._in_runs, self._at_import = set[str](), set[str]()
        #: What its import set: the values before and after.
        self._set: dict[str, tuple[Any, Any]] = {}
        self._setting = threading.Lock()
        self._runs = 0
        #: The states of generators of random numbers that runs left, with those that they found.
        self._left: dict[tuple[str, int], int] = {}

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """A block that imports the function's modules."""
        with Observer(self._folder, settings_only=not self._alone) as seen:
            yield
        self._set = seen.settings
        if self._alone:
            replaced = methods_replaced(named_modules()) | registries()
            self._at_import |= seen.found | replaced

    def take_back(self) -> None:
        """Set what the function's import has set as it was, until `set_again`.

        Generators of random numbers that the process shares begin anew: a seed would be that of
        every function, and in forked processes of every request.
        """
        for name, (before, _) in self._set.items():
            assign(name, before)
        if "sys.path" in self._set:
            before, after = self._set["sys.path"]
            self._set["sys.path"] = (before, [each for each in after if not _is_searched(each)])
        reseed_all()
        self.waits = bool(self._set)

    def set_again(self) -> None:
        """Set what the function's import had set: this process runs the function."""
        with self._setting:
            if self.waits:
                for name, (_, after) in self._set.items():
                    assign(name, _with_others(after) if name == "sys.path" else after)
                self.waits = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A block that runs the function."""
        self._runs += 1
        found, replaced = generators(draw=self._runs), _replaced()
        adopt_orphans()  # such as what a shell has started in the background
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
        """What it was seen to change so far."""
        at_import = self._at_import - SEEDS
        taken_back = {each for each in at_import if each in SETTERS or each.startswith(VARIABLE)}
        everywhere = at_import - taken_back
        return Changes(*map(_sorted, (self._in_runs, taken_back, everywhere)))


def _replaced() -> set[str]:
    """Where libraries have a function's own code."""
    return methods_replaced(modules()) | registries()


def _is_searched(place: str) -> bool:
    """Whether it is a folder below a function's own, which its namespace searches."""
    whole = Path(place).resolve()
    return package_at(place) is not None and whole.is_dir() and str(whole) not in folders()


def _with_others(path: Sequence[str]) -> list[str]:
    """``sys.path`` as it was set, and the folders of other functions of the process behind it."""
    return [*path, *(each for each in sys.path if each not in path)]


def _sorted(found: set[str]) -> list[str]:
    """Many environment variables are the environment."""
    variables = {name for name in found if name.startswith(VARIABLE)}
    return sorted(found if len(variables) < _MANY else found - variables | {ENVIRONMENT})
