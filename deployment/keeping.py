"""Keeps the settings that people changed on deployed wraps when other wraps replace them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from chiron.generator.annotations import FUNCTIONS, ROUTE
from chiron.generator.given import Given, digested, given_of, is_ours, is_told, labels_of
from chiron.openfaas.objects import FunctionStatus, Resources
from chiron.openfaas.stack import StackFile, StackFunction, StackResources, read_stack, write_stack

#: Labels that providers add to functions: faas-netes and its operator.
_PROVIDERS = frozenset({"app", "controller", "faas_function", "uid"})
#: Prefixes of secrets and variables that this program or the provider adds to stack.yaml's.
_ADDED_SECRETS, _ADDED_VARIABLES = "chiron-", "OPENFAAS_"
#: The variable with a wrap's memory limit; the wrap plans to use a share of it.
_MEMORY = "WRAP_MEMORY_MIB"


class _Changed(NamedTuple):
    """Changes that somebody made to settings which a plan decides."""

    environment: Mapping[str, str]
    limits: Mapping[str, str]
    requests: Mapping[str, str]

    @property
    def named(self) -> str:
        """The names of the changed fields, joined by "and"."""
        return " and ".join(name for name, value in self._asdict().items() if value)


def merge_settings(
    new: Mapping[str, str], given: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of a function that replaces another function.

    Args:
        new: the settings in the stack.yaml of the new function.
        given: the settings in the stack.yaml of the old function.
        now: the current settings of the old function; those that differ from `given` were changed.

    >>> merge_settings({"team": "b"}, {"team": "a"}, {"team": "a", "tier": "gold"})
    {'team': 'b', 'tier': 'gold'}
    >>> merge_settings({"team": "a", "old": "1"}, {"team": "a", "old": "1"}, {"team": "mine"})
    {'team': 'mine'}
    """
    changed = {key: value for key, value in now.items() if given.get(key) != value}
    removed = given.keys() - now.keys()
    return {key: value for key, value in {**new, **changed}.items() if key not in removed}


def keep_changes(function: StackFunction, before: FunctionStatus) -> StackFunction:
    """Return `function` with the settings that somebody changed on its predecessor `before`.

    Variables, limits and requests are for the functions inside: a wrap of other functions does not
    get them, see `lost_change_warnings`. Some providers do not report all fields, and a missing
    field counts as unchanged; so people can remove only labels and annotations. If `before` has no
    record of its stack.yaml, no change can be detected.
    """
    given = given_of(before.annotations)
    if given is None:
        return function
    set_now = {k: v for k, v in before.labels.items() if k not in _PROVIDERS}
    labels = labels_of(set_now, given)
    theirs = {k: v for k, v in before.annotations.items() if not is_ours(k)}
    ours = {k: v for k, v in function.annotations.items() if is_ours(k)}
    others = {k: v for k, v in function.annotations.items() if not is_ours(k)}
    known = (*given.constraints, *function.constraints)
    added = _added(before.secrets, given.secrets)
    secrets = [each for each in added if not each.startswith(_ADDED_SECRETS)]
    read_only = before.read_only_root_filesystem and not given.readonly_root_filesystem
    kept = function.model_copy(
        update={
            "labels": merge_settings(function.labels, given.labels, labels),
            "annotations": ours | merge_settings(others, given.annotations, theirs),
            "constraints": (*function.constraints, *_added(before.constraints, known)),
            "secrets": tuple(dict.fromkeys([*function.secrets, *secrets])),
            "readonly_root_filesystem": function.readonly_root_filesystem or read_only,
        }
    )
    return _with(kept, _changed(given, before)) if _runs_the_same(function, before) else kept


def lost_change_warnings(stack: StackFile, before: Mapping[str, FunctionStatus]) -> Iterator[str]:
    """Yield a warning for each function of `stack` that loses changes made to its predecessor."""
    for name, old in before.items():
        given = given_of(old.annotations)
        if given is None or name not in stack.functions:
            continue
        changed = _changed(given, old)
        if any(changed) and not _runs_the_same(stack.functions[name], old):
            yield (
                f"{name} runs other functions than {old.name}, whose {changed.named} somebody has "
                "set: they are not kept"
            )


def orphaned_change_warnings(gone: Iterable[FunctionStatus]) -> Iterator[str]:
    """Yield a warning for each removed function that has changed settings and no successor."""
    for old in gone:
        if (given := given_of(old.annotations)) is None:
            continue
        as_given = StackFunction(
            labels=given.labels,
            annotations={**given.annotations, FUNCTIONS: old.annotations.get(FUNCTIONS, "")},
            constraints=given.constraints,
            readonly_root_filesystem=given.readonly_root_filesystem,
        )
        if keep_changes(as_given, old) != as_given:
            yield f"nothing takes the place of {old.name}, so what somebody has set there is gone"


def keep_all_changes(stack: StackFile, before: Mapping[str, FunctionStatus]) -> StackFile:
    """Return `stack`; each function keeps the settings that somebody changed on its predecessor."""
    functions = {
        name: keep_changes(function, before[name]) if name in before else function
        for name, function in stack.functions.items()
    }
    return stack.model_copy(update={"functions": functions})


def keep_changes_in(stack_file: Path, before: Mapping[str, FunctionStatus]) -> list[str]:
    """Have the wraps in stack.yaml keep changed settings; return warnings on lost changes."""
    stack = read_stack(stack_file, {})
    write_stack(stack_file, keep_all_changes(stack, before))
    return list(lost_change_warnings(stack, before))


def _runs_the_same(function: StackFunction, before: FunctionStatus) -> bool:
    return function.annotations.get(FUNCTIONS) == before.annotations.get(FUNCTIONS)


def _added(now: Iterable[str], given: Iterable[str]) -> list[str]:
    """Return the elements of `now` that are not in `given`; spaces do not count."""
    known = {_compact(each) for each in given}
    return [each for each in now if _compact(each) not in known]


def _compact(constraint: str) -> str:
    """Return ``key=value``, the form that providers make of ``key == value``."""
    return "".join(constraint.split()).replace("==", "=")


def _changed(given: Given, before: FunctionStatus) -> _Changed:
    """Return the variables, limits and requests of `before` that differ from `given`."""
    known = given.environment if is_told(before.env_vars) else None
    environment = {
        name: value
        for name, value in before.env_vars.items()
        if known is not None and known.get(name) != digested(value)
        if name != ROUTE and not name.startswith(_ADDED_VARIABLES)
    }
    return _Changed(
        environment,
        _resized(given.limits, before.limits),
        _resized(given.requests, before.requests),
    )


def _resized(given: Resources | None, now: Resources | None) -> dict[str, str]:
    """Return changed memory and CPU, compared as quantities: Kubernetes rewrites them."""
    given, now = given or Resources(), now or Resources()
    found = dict[str, str]()
    if now.memory_mib not in (0, given.memory_mib):
        found["memory"] = f"{now.memory_mib}Mi"
    if now.millicores not in (0, given.millicores):
        found["cpu"] = now.cpu
    return found


def _with(function: StackFunction, changed: _Changed) -> StackFunction:
    """Return `function` with the changes; Kubernetes refuses a limit below the request."""
    limits = (function.limits or StackResources()).model_copy(update=changed.limits)
    requests = (function.requests or StackResources()).model_copy(update=changed.requests)
    environment = {**function.environment, **changed.environment}
    resized = changed.limits or changed.requests
    if resized:
        limits = limits.at_least([requests])
    if "memory" in changed.limits:
        environment[_MEMORY] = str(limits.memory_mib)
    return function.model_copy(
        update={
            "environment": environment,
            "limits": limits if resized else function.limits,
            "requests": requests if changed.requests else function.requests,
        }
    )
