"""Triggers that users write: classes in files of the workflow's folder. None is trusted.

An error of a trigger is reported as a fault of its bucket; other buckets continue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from .triggers import Batch, Item, Number, Recent, StreamTrigger, Value

#: The module from which users' files import the base class, wherever they run.
MODULE = "chiron_triggers"


class TriggerError(Exception):
    def __init__(self, bucket: str, what: str, error: BaseException | str) -> None:
        said = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        super().__init__(f"bucket {bucket}: {what}: {said}{_place(error)}")
        self.bucket = bucket


def is_own(trigger: str) -> bool:
    """Return whether a document names FILE.CLASS instead of a built-in trigger."""
    return "." in trigger


def file_of(trigger: str) -> str:
    return f"{trigger.partition('.')[0]}.py"


def loaded(declared: Mapping[str, Any], load: Callable[[str], object]) -> dict[str, Any]:
    """Return `declared` with users' trigger classes; `load` runs a file. Raises TriggerError."""
    modules = dict[str, object]()
    buckets = dict[str, Any]()
    for bucket, its in declared["buckets"].items():
        buckets[bucket] = its
        if not is_own(its["trigger"]):
            continue
        file, name = file_of(its["trigger"]), its["trigger"].partition(".")[2]
        try:
            if file not in modules:
                modules[file] = load(file)
            kind = getattr(modules[file], name)
            if not (isinstance(kind, type) and issubclass(kind, StreamTrigger)):
                raise TypeError(f"{name} is no subclass of {MODULE}.StreamTrigger")
        except (Exception, SystemExit) as error:
            raise TriggerError(bucket, file, error) from error
        buckets[bucket] = {**its, "class": kind}
    return {**declared, "buckets": buckets}


class OwnTrigger(StreamTrigger[Value]):
    """Wraps a user's trigger, checks its answers and reports its errors.

    Args:
        kind, options: the class and its arguments.
        faults: the list to which errors are appended.

    Raises TriggerError if the trigger cannot be made.
    """

    def __init__(
        self,
        bucket: str,
        kind: type[StreamTrigger[Value]],
        options: Mapping[str, Any],
        faults: list[TriggerError],
    ) -> None:
        super().__init__()
        self._bucket, self._name, self._faults = bucket, kind.__name__, faults
        self._taken, self._fired = Recent(), Recent()
        try:
            self._own = kind(**options)
            if not hasattr(self._own, "rerun_after_s"):
                raise TypeError("__init__ has to call super().__init__()")
        except (Exception, SystemExit) as error:
            raise TriggerError(bucket, kind.__name__, error) from error

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        if not self._taken.adds(item.number):
            return ()
        return self._fires("on_object", item, now_s)

    def on_source_started(self, source: Number, now_s: float) -> None:
        self._ask("on_source_started", source, now_s)

    def due_for_rerun(self, now_s: float) -> Sequence[Number]:
        return [each for each in self._ask("due_for_rerun", now_s) if isinstance(each, tuple)]

    def on_time(self, now_s: float) -> Sequence[Batch[Value]]:
        if self._own.due_s > now_s:
            return ()
        found = self._fires("on_time", now_s)
        if not self._own.due_s > now_s:
            self._own.due_s = self.due_s = math.inf
            self._fault("on_time", "due_s has to be later then, or math.inf")
        return found

    def drain(self, now_s: float) -> Sequence[Batch[Value]]:
        return self._fires("drain", now_s)

    def _fires(self, method: str, *arguments: Any) -> list[Batch[Value]]:
        batches = list[Batch[Value]]()
        for each in self._ask(method, *arguments):
            wrong = self._wrong(each)
            if wrong:
                self._fault(method, wrong)
            else:
                batches.append(Batch(tuple(each.items), each.due_s))
        return batches

    def _wrong(self, batch: Any) -> str:
        """Return the error of a batch; empty if it may fire."""
        if not isinstance(batch, Batch) or not isinstance(batch.due_s, int | float):
            return f"answers {type(batch).__name__}: a list of Batch(items, now_s) is needed"
        if not batch.items or not all(isinstance(item, Item) for item in batch.items):
            return "a batch has to have objects, all of which on_object has got"
        if not all(self._fired.adds(item.number) for item in batch.items):
            return "an object fires that has fired before"
        return ""

    def _ask(self, method: str, *arguments: Any) -> Iterable[Any]:
        own = self._own
        own.rerun_after_s = self.rerun_after_s
        try:
            found = list(getattr(own, method)(*arguments) or ())
            self.due_s, self.size = min(own.due_s, own.rerun_due_s) + 0.0, own.size + 0
        except (Exception, SystemExit) as error:
            self._fault(method, error)
            return ()
        return found

    def _fault(self, method: str, error: BaseException | str) -> None:
        self._faults.append(TriggerError(self._bucket, f"{self._name}.{method}", error))


def _place(error: BaseException | str) -> str:
    """Return the line of the user's file at which an error was raised."""
    traceback, place = None if isinstance(error, str) else error.__traceback__, ""
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__name__", "").startswith("_triggers_"):
            place = (
                f" ({PurePath(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno})"
            )
        traceback = traceback.tb_next
    return place
