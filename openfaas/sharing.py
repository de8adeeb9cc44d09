"""Unite the fields of stack.yaml of several functions that share a wrap.

A wrap is one OpenFaaS function. Fields are united if all functions work with the union. Otherwise
functions with different values share no wrap. generator/README.md has the rule of each field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, ZERO_LABEL
from chiron.openfaas.stack import PACKAGES, StackFunction
from chiron.openfaas.variables_read import packages_of, read_of
from chiron.workflow.units import go_duration_s

#: The annotations by which OpenFaaS's connectors find the functions to call.
TRIGGERS = frozenset({"topic", "schedule"})
#: The other build arguments of a wrap's Dockerfile, and those predefined by Docker.
BUILD_ARGUMENTS = frozenset(
    {"BASE_IMAGE", "DEBIAN_OS", "PYTHON_VERSION", "RUNTIME_IMAGE", "WATCHDOG_IMAGE"}
)
_PROXIES = frozenset({"ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})
#: Annotations for the probes of a function's own server, which does not exist in a wrap.
_PROBES = ("com.openfaas.health.", "com.openfaas.ready.")
#: Annotations that only this project writes.
_OWN = "chiron."
#: Variables of of-watchdog for starting and reaching a function's own server.
_SERVER = "fprocess function_process mode upstream_url http_upstream_url static_path ready_path"
_REACHED = "port suppress_lock buffer_http http_buffer_req_body log_buffer_size"
OF_SERVERS = frozenset(f"{_SERVER} {_REACHED}".split())
#: Variables of of-watchdog for the lines of its log, which a wrap gets if all its functions agree.
OF_LOGS = frozenset({"prefix_logs", "log_callid", "log_call_id"})
#: Variables by which of-watchdog asks for a token: absence is a value, too.
_GUARD = "jwt_auth"
OF_GUARDS = (_GUARD, "jwt_auth_debug", "jwt_auth_local")
#: Variables that only wraps set: computed from the plan, or of their server.
_TIMES = "exec_timeout healthcheck_interval read_timeout write_timeout"
_SIZES = "max_inflight pool_concurrency WAITRESS_THREADS WRAP_CPUS"
_MEMORY = "WRAP_MEMORY_MIB WRAP_REQUEST_BYTES WRAP_OBJECTS_MIB"
OF_WRAPS = frozenset(f"{_TIMES} {_SIZES} {_MEMORY}".split()) | OF_SERVERS
#: A function's ``exec_timeout`` limits its runs; ``max_inflight`` has its own warning.
_OWN_VALUES = OF_WRAPS - OF_SERVERS - {"exec_timeout", "max_inflight"}
#: Fields that isolate a function: absence is a value, too.
_READ_ONLY = "readonly_root_filesystem"
_ISOLATION = (
    _READ_ONLY,
    "annotation com.openfaas.profile",
    "annotation com.openfaas.serviceaccount",
)
_SCALE = "com.openfaas.scale."
#: ``key=value``, or ``key == value`` of Docker Swarm.
_SELECTOR = re.compile(r"\s*([^=!\s]+)\s*==?\s*(.*?)\s*")

#: Selects a wrap's value of a label from its functions' values.
_Choice = Callable[[Iterable[str]], str]


def _most(values: Iterable[str]) -> str:
    return max(values, key=float)


def _least(values: Iterable[str]) -> str:
    return min(values, key=float)


def _longest(values: Iterable[str]) -> str:
    return max(values, key=lambda text: go_duration_s(text) or 0.0)


_CHOICES: Mapping[str, _Choice] = {
    MIN_LABEL: _most,
    MAX_LABEL: _least,
    f"{_SCALE}factor": _most,
    f"{_SCALE}target": _least,
    f"{_SCALE}target-proportion": _least,
    f"{_SCALE}zero-duration": _longest,
    f"{_SCALE}down.window": _longest,
}


def one_valued(functions: Mapping[str, StackFunction]) -> dict[str, dict[str, str]]:
    """Return, for each function, the fields that can have only one value in a wrap.

    Functions with different values of one field share no wrap. A function without a value accepts
    any, except for the fields that isolate functions.
    """
    found = {name: dict(_fields(function)) for name, function in functions.items()}
    for field in _ISOLATION:
        if any(field in fields for fields in found.values()):
            for fields in found.values():
                fields.setdefault(field, "")
    return found


def _fields(function: StackFunction) -> Iterator[tuple[str, str]]:
    if function.readonly_root_filesystem:
        yield _READ_ONLY, "true"
    if function.platforms:
        yield "platforms", ",".join(sorted({p.strip() for p in function.platforms.split(",")}))
    for key, value in function.labels.items():
        if key not in _CHOICES and key != ZERO_LABEL:
            yield f"label {key}", value
    for key, value in handed_on(function.annotations).items():
        if key not in TRIGGERS:
            yield f"annotation {key}", value
    for key, value in _build_arguments(function).items():
        yield f"build argument {key}", value
    for constraint in function.constraints:
        if selector := _SELECTOR.fullmatch(constraint):
            yield f"constraint {selector[1]}", selector[2]


def with_unset(
    variables: Mapping[str, Mapping[str, str]], places: Mapping[str, Iterable[Path]]
) -> dict[str, dict[str, str]]:
    """Return each function's `variables`, and others that are empty for it.

    Its code in `places` reads these, or of-watchdog does (`OF_GUARDS`).
    """
    whole = set(chain.from_iterable(variables.values()))
    packages = dict[str, set[str]]()
    for name, own in variables.items():
        for each, imported in packages_of(own, places[name]).items():
            packages.setdefault(each, set()).update(imported)
    found = {}
    for name, own in variables.items():
        others = whole - own.keys()
        read = read_of(others, places[name], packages) | others.intersection(OF_GUARDS)
        found[name] = {**own, **dict.fromkeys(sorted(read), "")}
    return found


def values_of(variable: str, variables: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the functions' values of a variable; an unset variable is empty."""
    return {each.get(variable, "") for each in variables.values()}


def is_on(value: str) -> bool:
    """Return whether of-watchdog reads this value of a flag as true."""
    return value in ("true", "1")


def _build_arguments(function: StackFunction) -> dict[str, str]:
    """Return the build arguments that have an effect in a wrap, without packages."""
    return {k: v for k, v in function.build_args.items() if _has_effect(k)}


def _has_effect(argument: str) -> bool:
    return argument in BUILD_ARGUMENTS or argument.upper() in _PROXIES


def handed_on(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the `annotations` that have the same meaning on a wrap."""
    return {k: v for k, v in annotations.items() if not k.startswith((*_PROBES, _OWN))}


def without_triggers(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the `annotations` without those that connectors use."""
    return {key: value for key, value in annotations.items() if key not in TRIGGERS}


def united(functions: Sequence[StackFunction]) -> StackFunction:
    """Return the fields of a wrap that follow from its `functions` alone, including triggers.

    The functions must agree in all fields of `one_valued`.
    """
    return StackFunction(
        namespace=next((each.namespace for each in functions if each.namespace), ""),
        labels=_labels([function.labels for function in functions]),
        annotations=_union(handed_on(function.annotations) for function in functions),
        constraints=tuple(dict.fromkeys(chain.from_iterable(f.constraints for f in functions))),
        readonly_root_filesystem=any(function.readonly_root_filesystem for function in functions),
        build_args=_union(map(_build_arguments, functions)),
        secrets=tuple(dict.fromkeys(chain.from_iterable(f.secrets for f in functions))),
        platforms=next((each.platforms for each in functions if each.platforms), ""),
    )


def _union(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for each in maps for key, value in each.items()}


def _labels(labels: Collection[Mapping[str, str]]) -> dict[str, str]:
    """Return all labels; labels for scaling get values that suit every function.

    The wrap's minimum of replicas is the largest of its functions' minima. It may scale to zero
    only if every function may.
    """
    found = _union({k: v for k, v in its.items() if k not in _CHOICES} for its in labels)
    for key, choice in _CHOICES.items():
        if values := [its[key] for its in labels if key in its and is_readable(key, its[key])]:
            found[key] = choice(values)
    if MIN_LABEL in found and MAX_LABEL in found:
        found[MAX_LABEL] = _most([found[MIN_LABEL], found[MAX_LABEL]])
    if ZERO_LABEL in found:
        zero = all(its.get(ZERO_LABEL, "").lower() in ("true", "1") for its in labels)
        found[ZERO_LABEL] = "true" if zero else "false"
    return found


def is_readable(label: str, value: str) -> bool:
    """Return whether OpenFaaS can parse this value of a scaling label; True for other labels."""
    choice = _CHOICES.get(label)
    if choice is _longest:
        return go_duration_s(value) is not None
    number = r"[0-9]+(\.[0-9]+)?" if "target" in label else "[0-9]+"
    return choice is None or re.fullmatch(number, value, re.ASCII) is not None


def left_out(name: str, function: StackFunction, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each value of a task's `function`, called `name`, that its wrap drops.

    Also warns of a token that all callers of its wrap need.

    `variables` are its own, including those of its environment files.
    """

    def line(field: str, why: str) -> str:
        return f"function {name}: {field} {why}"

    for key, value in function.labels.items():
        if not is_readable(key, value):
            yield line(f"label {key}", f"is {value!a}, which OpenFaaS cannot read: it is left out")
    for key in function.annotations:
        if key.startswith(_PROBES):
            why = "is left out: a wrap answers probes itself, and its functions have no server"
            yield line(f"annotation {key}", why)
        elif key.startswith(_OWN):
            yield line(f"annotation {key}", f"is left out: only wraps may set {_OWN}*")
    for key in sorted(OF_SERVERS & variables.keys()):
        why = "is left out: of-watchdog would take it for the wrap's, and functions have no server"
        yield line(f"environment.{key}", why)
    for key in sorted(_OWN_VALUES & variables.keys()):
        why = "is left out: a wrap has its own value, from its plan and its functions' exec_timeout"
        yield line(f"environment.{key}", why)
    limit = variables.get("exec_timeout", "")
    if go_duration_s(limit) is None and not re.fullmatch(r"(0(ms|us|h|m|s)?)?", limit):
        yield line("environment.exec_timeout", f"is {limit!a} and left out: write 90s, or 1m30s")
    if most := variables.get("max_inflight"):
        why = "is left out: a wrap limits requests, so that the function may run more often at once"
        yield line(
            f"environment.max_inflight, {most!a},", f"{why}; guard it by a lock if it must not"
        )
    if is_on(variables.get(_GUARD, "")):
        why = "guards its wrap: callers need a token, which chiron and other wraps do not send"
        yield line(f"environment.{_GUARD}", why)
    for field, resources in (("limits", function.limits), ("requests", function.requests)):
        if resources is None:
            continue
        for unit, text, read in (
            ("memory", resources.memory, resources.memory_mib),
            ("cpu", resources.cpu, resources.millicores),
        ):
            if text and not read:
                yield line(f"{field}.{unit}", f"is {text!a} and left out: write 128Mi, or 500m")
    for key in function.build_args:
        if key != PACKAGES and not _has_effect(key):
            why = f"is left out: the Dockerfile of wraps has {', '.join(sorted(BUILD_ARGUMENTS))}"
            yield line(f"build argument {key}", f"{why} and {PACKAGES}")
    if function.skip_build:
        yield line("skip_build", "has no effect: its wrap has an image of its own, which is built")
