"""Workflows of buckets: a bucket stores objects until its trigger fires functions with them.

``{"entry": bucket, "buckets": {name: {"trigger": ..., "functions": [...]}}, "functions": {name:
{"gives": bucket}}}``; docs/forms.md has all fields.

References
----------
Pheromone (NSDI'23), §III: buckets, and the triggers of Table I.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from chiron.workflow.documents import read_file
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.fields import Fields, typed
from chiron.workflow.model import Task, Workflow, source_of
from chiron.workflow.names import (
    OUTPUT_NAME,
    TASK_NAME_LIMIT,
    FunctionNames,
    check_distinct,
    check_task_name,
    shown,
    workflow_name,
)
from chiron.workflow.python_code import syntax_tree
from chiron.wrap.core.buckets.own import file_of, is_own

#: The default and the maximum number of starts of a function, in all, for one firing.
_ATTEMPTS, _MOST_ATTEMPTS = 2, 10
_MOST_OBJECTS = 1_000_000
_DAY_MS = 86_400_000.0
_EACH = "each"
#: The trigger of a bucket that is a class in a file of the workflow's folder: FILE.CLASS.
_OWN = re.compile(r"[a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: The maximum size of such a file, in bytes.
_OWN_LIMIT = 1 << 20
_COMMON = "trigger function functions attempts rerun_after_ms"

#: A bucket, and whether each item of a list becomes an object there.
Given = tuple[str, bool]


class _Givers(NamedTuple):
    """The functions that give to a bucket, the names that they emit, and whether events come."""

    functions: list[str]
    names: list[str]
    events: bool


#: Reads a trigger's options from the fields of its bucket.
_Read = Callable[[Fields, _Givers], dict[str, Any]]


def is_buckets(document: Mapping[str, Any]) -> bool:
    return "buckets" in document


def parse_buckets(
    document: dict[str, Any], default_name: str, names: FunctionNames | None = None
) -> Workflow:
    """Parse a document of buckets; `names` resolves the functions' names.

    The tasks are the functions, each after the functions that give to its buckets, as if every
    function ran once. Plans and predictions use these tasks. Executions use ``Workflow.buckets``.

    Raises all faults, each with its path: ``unknown-field``, ``bad-field``, ``missing-field``,
    ``unknown-bucket``, ``unknown-function``, ``unreachable``, ``cycle``, ``bad-name``,
    ``alike-names``.

    >>> count = {"trigger": "by-time", "window_ms": 1000, "function": "count"}
    >>> parse_buckets({"entry": "clicks", "buckets": {"clicks": count}}, "demo").buckets["entry"]
    ['clicks']
    """
    return _Reader(document, names or FunctionNames({})).workflow(default_name)


def own_triggers(buckets: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the user-written trigger (FILE.CLASS) by bucket; empty if `buckets` is None."""
    declared = buckets["buckets"] if buckets is not None else {}
    return {name: its["trigger"] for name, its in declared.items() if is_own(its["trigger"])}


def check_own_triggers(buckets: Mapping[str, Any] | None, folder: Path) -> None:
    """Check that the files of users' triggers are in `folder` and have their classes; run no code.

    Raises ``missing-file``, ``too-large``, ``bad-trigger``.
    """
    for bucket, trigger in own_triggers(buckets).items():
        path, file, name = f"buckets.{bucket}.trigger", file_of(trigger), trigger.partition(".")[2]
        try:
            content = read_file(folder / file, f"trigger {trigger} in {folder / file}", _OWN_LIMIT)
            parsed = syntax_tree(content, file)
        except ChironError as error:
            raise error.changed(path) from None
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ChironError("bad-trigger", f"{file} is not Python: {error}", path=path) from None
        classes = [each.name for each in parsed.body if isinstance(each, ast.ClassDef)]
        if name not in classes:
            there = ", ".join(classes) or "no class"
            message = f"{file} has no class {name} at its top level: there is {there}"
            raise ChironError("bad-trigger", message, path=path)


class _Reader:
    def __init__(self, document: dict[str, Any], names: FunctionNames) -> None:
        self._faults = Faults()
        self._whole = Fields(
            document, (), self._faults, "name comment entry durable buckets functions"
        )
        self._names = names
        self._buckets = self._whole.inner("buckets")
        self._functions = self._whole.inner("functions")
        self._starts: dict[str, list[str]] = {}
        self._gives: dict[str, list[Given]] = {}
        self._emits: dict[str, list[str]] = {}
        self._durable = False

    def workflow(self, default_name: str) -> Workflow:
        """Return the workflow, or raise all its faults."""
        if not self._buckets.names:
            message = 'buckets has to be an object of at least one "bucket": {"trigger": ...}'
            raise ChironError("bad-field", message, path="buckets")
        faults, name = self._faults, default_name
        with faults.noting():
            name = workflow_name(self._whole.whole.get("name", default_name), "name")
        for bucket in self._buckets.names:
            self._starts[bucket] = []
            with faults.noting():
                self._starts[bucket] = _texts(self._bucket(bucket), "function", "functions")
        tasks = list(dict.fromkeys(t for starts in self._starts.values() for t in starts))
        functions = dict(self._functions.each(lambda task: self._function(task, tasks)))
        for task in tasks:
            if task not in functions:
                with faults.noting():
                    functions[task] = self._name(task, task, f"buckets of {task}")
        self._durable = self._whole.whole.get("durable", False)
        with faults.noting():
            if not isinstance(self._durable, bool):
                raise ChironError("bad-field", "durable has to be true or false", path="durable")
        entry = list[str]()
        with faults.noting():
            entry = self._known(_texts(self._whole, "entry"), "entry")
        with faults.noting():
            check_distinct(tasks, "functions")
        with faults.noting():
            self._names.check()
        faults.raise_all()
        return self._put_together(name, functions, tasks, entry)

    def _put_together(
        self, name: str, functions: Mapping[str, str], tasks: list[str], entry: list[str]
    ) -> Workflow:
        givers: dict[str, list[str]] = {bucket: [] for bucket in self._starts}
        for task, gives in self._gives.items():
            for bucket, _ in gives:
                givers[bucket].append(task)
        sources: dict[str, dict[str, None]] = {task: {} for task in tasks}
        for bucket, starts in self._starts.items():
            for task in starts:
                sources[task].update(dict.fromkeys(givers[bucket]))
        last = [task for task in tasks if not self._gives.get(task)]
        found = Workflow(
            name=name,
            tasks=tuple(Task(task, functions[task], source_of(sources[task])) for task in tasks),
            output=source_of(last),
        )
        declared: dict[str, dict[str, Any]] = {}
        levels = {
            bucket: max((found.stage_of(task) + 1 for task in givers[bucket]), default=0)
            for bucket in self._starts
        }
        for bucket in sorted(levels, key=levels.__getitem__):
            with self._faults.noting():
                names = [name for task in givers[bucket] for name in self._emits[task]]
                known = _Givers(givers[bucket], names, bucket in entry)
                declared[bucket] = self._declared(bucket, known)
        self._faults.raise_all()
        buckets = {
            "entry": entry,
            "durable": self._durable,
            "gives": self._gives,
            "emits": {task: names for task, names in self._emits.items() if names},
            "buckets": declared,
        }
        return Workflow(found.name, found.tasks, found.output, buckets=buckets)

    def _bucket(self, name: str) -> Fields:
        place = ("buckets", name)
        trigger = _trigger(Fields(self._buckets.whole[name], place, self._faults))
        known = f"{_COMMON} {_reader(trigger)[0]}"
        return Fields(self._buckets.whole[name], place, self._faults, known)

    def _function(self, task: str, started: list[str]) -> tuple[str, str]:
        """Return the task and its function's name; record the buckets to which it gives."""
        path = self._functions.at(task)
        fields = self._functions.inner(task, "function gives emits")
        gives = fields.whole.get("gives", [])
        self._gives[task] = []
        for each in gives if isinstance(gives, list) else [gives]:
            self._gives[task] += self._given(each, fields.at("gives"))
        self._emits[task] = self._emitted(task, fields) if "emits" in fields else []
        if task not in started:
            message = f"no bucket starts {shown(task)}: name it in one, or leave it out"
            raise ChironError("unreachable", message, path=path, functions=[task])
        given = fields.text("function") if "function" in fields else task
        return task, self._name(task, given, path)

    def _emitted(self, task: str, fields: Fields) -> list[str]:
        """Return the names of objects that a function declares to emit, besides its buckets."""
        names, path = _texts(fields, "emits"), fields.at("emits")
        for name in names:
            if not OUTPUT_NAME.fullmatch(name):
                message = f"{shown(name)} is no name of an object: letters, digits, _ and - are"
                raise ChironError("bad-name", message, path=path)
            if name in self._starts:
                message = f"{shown(name)} is a bucket: emit it by that name, and leave it out here"
                raise ChironError("bad-field", message, path=path)
        if not self._gives[task]:
            message = f"{shown(task)} gives to no bucket: say in gives which ones get {names[0]}"
            raise ChironError("missing-field", message, path=fields.at("gives"))
        return names

    def _given(self, each: Any, path: str) -> list[Given]:
        if isinstance(each, dict) and list(each) == [_EACH]:
            several = each[_EACH] if isinstance(each[_EACH], list) else [each[_EACH]]
            return [(name, True) for name in self._known(several, path)]
        return [(name, False) for name in self._known([each], path)]

    def _name(self, task: str, given: str, path: str) -> str:
        check_task_name(task, path, TASK_NAME_LIMIT)
        return self._names.function(given, path)

    def _known(self, buckets: Iterable[Any], path: str) -> list[str]:
        found = list[str]()
        for bucket in buckets:
            if not isinstance(bucket, str):
                message = 'a bucket is named by a text, or by {"each": "bucket"} what gives a list'
                raise ChironError("bad-field", message, path=path)
            if bucket not in self._starts:
                message = f"there is no bucket {shown(bucket)}: there are {', '.join(self._starts)}"
                raise ChironError("unknown-bucket", message, path=path)
            found.append(bucket)
        return found

    def _declared(self, bucket: str, givers: _Givers) -> dict[str, Any]:
        fields = Fields(self._buckets.whole[bucket], ("buckets", bucket), self._faults)
        if not (givers.functions or givers.events):
            message = f"nothing comes to bucket {shown(bucket)}: no function gives to it, nor entry"
            raise ChironError("unreachable", message, path=fields.path)
        trigger = fields.text("trigger")
        if is_own(trigger) and self._durable:
            message = "what waits for a trigger of your own is in memory alone: leave durable out"
            raise ChironError("bad-field", message, path=fields.at("trigger"))
        declared = {
            "trigger": trigger,
            "options": _reader(trigger)[1](fields, givers),
            "starts": self._starts[bucket],
            "attempts": _count(fields, "attempts", _MOST_ATTEMPTS, _ATTEMPTS),
        }
        for field in ("name_from", "group_from"):
            if field in fields:
                declared[field] = fields.text(field)
        if "rerun_after_ms" in fields:
            declared["rerun_after_s"] = _seconds(fields, "rerun_after_ms")
        return declared


def _trigger(fields: Fields) -> str:
    """Return the trigger in `fields`: a known trigger, or FILE.CLASS."""
    given = fields.text("trigger")
    if given in _READERS or _OWN.fullmatch(given):
        return given
    message = (
        f"trigger is {shown(given)}; there are: {', '.join(_READERS)}, or FILE.CLASS for a class "
        "of your own in FILE.py beside the workflow"
    )
    raise ChironError("bad-field", message, path=fields.at("trigger"))


def _reader(trigger: str) -> tuple[str, _Read]:
    """Return the trigger's own fields, and the function that reads its options."""
    return _READERS.get(trigger, ("options name_from group_from", _options))


def _texts(fields: Fields, one: str, several: str | None = None) -> list[str]:
    """Return the distinct texts of a field that is one text or a list of texts."""
    field = several if several is not None and several in fields else one
    if several is not None and one in fields and several in fields:
        raise ChironError("bad-field", f"there is {one} too: keep one", path=fields.at(several))
    if field not in fields:
        raise ChironError("missing-field", f"{field} is missing", path=fields.at(field))
    given = fields.whole[field]
    found = fields.required_items(field) if isinstance(given, list) else [fields.text(field)]
    texts = [typed(each, str, (*fields.place, field, n)) for n, each in enumerate(found)]
    if len(set(texts)) < len(texts):
        raise ChironError("bad-field", f"{field} has one name twice", path=fields.at(field))
    return texts


def _count(fields: Fields, field: str, most: int, default: int | None = None) -> int:
    """Return a whole number from 1 to `most`; the field is required if there is no `default`."""
    if field not in fields and default is not None:
        return default
    if field not in fields:
        raise ChironError("missing-field", f"{field} is missing", path=fields.at(field))
    found = fields.whole[field]
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= most:
        message = f"{field} has to be a whole number from 1 to {most}"
        raise ChironError("bad-field", message, path=fields.at(field))
    return found


def _seconds(fields: Fields, field: str) -> float:
    """Return a required field of milliseconds above 0, in seconds."""
    if field not in fields:
        raise ChironError("missing-field", f"{field} is missing", path=fields.at(field))
    found: float = typed(fields.whole[field], float, (*fields.place, field))
    if not 0 < found <= _DAY_MS:
        message = f"{field} has to be above 0 and at most {_DAY_MS:.0f}, which is a day"
        raise ChironError("bad-field", message, path=fields.at(field))
    return found / 1000


def _names(fields: Fields, givers: _Givers) -> dict[str, Any]:
    """Return the awaited names: values of a field, giving functions, or names that those emit."""
    if "name_from" in fields:
        return {"names": _texts(fields, "names")}
    if givers.events:
        message = "events have no names: say with name_from which of their fields has it"
        raise ChironError("missing-field", message, path=fields.at("name_from"))
    names = _texts(fields, "names") if "names" in fields else givers.functions
    for name in names:
        if name not in (*givers.functions, *givers.names):
            message = (
                f"{shown(name)} gives nothing to it: without name_from, names are functions, or in "
                "the emits of one"
            )
            raise ChironError(
                "unknown-function", message, path=fields.at("names"), functions=[name]
            )
    return {"names": names}


def _batch(fields: Fields, _givers: _Givers) -> dict[str, Any]:
    options: dict[str, Any] = {"size": _count(fields, "size", _MOST_OBJECTS)}
    return options | ({"wait_s": _seconds(fields, "wait_ms")} if "wait_ms" in fields else {})


def _window(fields: Fields, _givers: _Givers) -> dict[str, Any]:
    return {"window_s": _seconds(fields, "window_ms")}


def _redundant(fields: Fields, _givers: _Givers) -> dict[str, Any]:
    n = _count(fields, "n", _MOST_OBJECTS)
    return {"k": _count(fields, "k", n)}


def _group(fields: Fields, givers: _Givers) -> dict[str, Any]:
    """Require ``group_from`` if events come: functions can set the group when they emit."""
    if givers.events:
        fields.text("group_from")
    return {}


def _options(fields: Fields, _givers: _Givers) -> dict[str, Any]:
    return dict(fields.inner("options").whole)


#: The own fields of each trigger, and the function that reads its options.
_READERS: Mapping[str, tuple[str, _Read]] = {
    "immediate": ("", lambda *_: {}),
    "by-name": ("names name_from", _names),
    "by-set": ("names name_from", _names),
    "by-batch-size": ("size wait_ms", _batch),
    "by-time": ("window_ms", _window),
    "redundant": ("k n", _redundant),
    "dynamic-join": ("", lambda *_: {}),
    "dynamic-group": ("group_from", _group),
}
