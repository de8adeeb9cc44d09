"""A wrap's entry in stack.yaml: limits, variables, labels, annotations, build arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from chiron.generator.annotations import CALLED, annotate
from chiron.generator.declaration import functions_in
from chiron.generator.given import GIVEN, given
from chiron.generator.merging import merge_environments, merge_fields
from chiron.generator.scale_labels import scale_labels
from chiron.generator.settings import (
    HOLDING_WATCHDOG_SLEEP,
    NATIVE_THREADS,
    REQUESTED_PER_CPU,
    service_environment,
    wrap_environment,
)
from chiron.generator.stack_check import build_options, first_function, registry_of
from chiron.generator.stores import Needs
from chiron.openfaas.languages import language_of
from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, ZERO_LABEL
from chiron.openfaas.sharing import TRIGGERS, without_triggers
from chiron.openfaas.stack import PACKAGES, StackFunction, StackResources
from chiron.scheduler.concurrency import IDLE_MIB
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.paths import PATHS
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.tracing import KEY_ANNOTATION, KEY_VARIABLE

if TYPE_CHECKING:
    from chiron.generator.generate import Sources

WRAP = "python3-wrap"
#: faas-cli deploys without the template only if stack.yaml has the command.
_FPROCESS = "python index.py"
_SLO_VARIABLE = "WRAP_SLO_MS"
#: The limit of the data of a state machine, in bytes, which any of its functions may set.
_STATE_BYTES = "WRAP_STATE_BYTES"


def _resources(wrap: Wrap, sources: Sources) -> tuple[StackResources, StackResources]:
    """Return requests (needs of `wrap`) and limits (its maximum), of memory and CPU.

    Limits are those of the plan. Requests are the plan's memory, or an idle wrap's if the demand is
    unknown, and a share of its CPUs. Each is at least the maximum over its functions. No limit is
    below the request: Kubernetes refuses that.
    """
    functions = list(sources.inside(wrap).values())
    needed_mib = wrap.memory_mib if wrap.demand else min(wrap.memory_mib, int(IDLE_MIB))
    needed = StackResources(memory=f"{needed_mib}Mi", cpu=f"{REQUESTED_PER_CPU * wrap.cpus}m")
    planned = StackResources(memory=f"{wrap.memory_mib}Mi", cpu=str(wrap.cpus))
    requests = needed.at_least(function.requests for function in functions)
    return requests, planned.at_least([requests, *(function.limits for function in functions)])


def allowed(plan: Plan, sources: Sources) -> Plan:
    """Return `plan` with the memory and CPUs of the wraps' limits."""
    wraps = []
    for wrap in plan.wraps:
        limits = _resources(wrap, sources)[1]
        most = {"memory_mib": limits.memory_mib, "cpus": -(-limits.millicores // 1000)}
        wraps.append(wrap.model_copy(update=most))
    return plan.model_copy(update={"wraps": tuple(wraps)})


def stack_function(
    plan: Plan,
    most: Plan,
    index: int,
    sources: Sources,
    needs: Needs,
    seconds: float,
    marks: Mapping[str, str],
) -> StackFunction:
    """Return the wrap's entry, limited by `most`; ``environment-conflict``, ``stack-conflict``."""
    wrap = plan.wraps[index]
    functions = sources.inside(wrap)
    places = {name: sources.handlers[name].places for name in functions}
    shared = merge_fields(wrap.name, functions)
    requests, limits = _resources(wrap, sources)
    run = wrap_environment(most, most.wraps[index], seconds)
    settings = run | {KEY_VARIABLE: marks[KEY_ANNOTATION], **needs.variables}
    exported = functions if plan.orchestrator == "client" else sources.handlers
    settings |= service_environment(sources.variables(exported))
    buckets = sources.folder.workflow.buckets
    is_entry = index == 0 or plan.orchestrator == "client"
    is_called = not is_entry and PATHS[plan.path].connects
    if is_called or (buckets is not None and not buckets["durable"]):
        settings["healthcheck_interval"] = HOLDING_WATCHDOG_SLEEP
    if is_entry and plan.orchestrator != "client":
        settings |= _of_entry(plan, sources)
    labels = {**scale_labels(plan, index, shared.labels), **_replicas(buckets)}
    annotations = {
        **annotate(plan, index, sources.folder.workflow),
        **_calls(wrap, sources),
        **without_triggers(shared.annotations),
        **_triggers(plan, index, sources),
        **marks,
    }
    settled = dict[str, object](
        lang=WRAP,
        handler=f"./{wrap.name}",
        image=sources.image(wrap.name, registry_of(functions.values())),
        fprocess=_FPROCESS,
        environment=sources.common_variables
        | NATIVE_THREADS
        | merge_environments(
            wrap.name, sources.variables(functions), sources.styles, settings, places
        ),
        secrets=tuple(dict.fromkeys([*shared.secrets, *needs.secrets])),
        labels=labels,
        annotations=annotations,
        limits=limits,
        requests=requests,
        build_args={
            **_of_languages(functions.values()),
            **shared.build_args,
            **_packages(functions.values()),
        },
    )
    made = shared.model_copy(update=settled)
    return made.model_copy(update={"annotations": {**annotations, GIVEN: given(made)}})


def _calls(wrap: Wrap, sources: Sources) -> dict[str, str]:
    """Return the annotation with the functions that `wrap` calls, if there are any."""
    names = functions_in(wrap, sources.folder.workflow)
    called = ",".join(name for name in names if name in sources.called)
    return {CALLED: called} if called else {}


def _replicas(buckets: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the replica labels of a wrap with buckets in memory: exactly one replica."""
    if buckets is None or buckets["durable"]:
        return {}
    return {MIN_LABEL: "1", MAX_LABEL: "1", ZERO_LABEL: "false"}


def _triggers(plan: Plan, index: int, sources: Sources) -> dict[str, str]:
    """Return the annotations by which connectors call the wrap at `index` of `plan`.

    The entry is called in place of the function with which the workflow begins. If the client calls
    every wrap, each wrap is called in place of its own function.
    """
    workflow = sources.folder.workflow
    called = first_function(workflow) if index == 0 else None
    if plan.orchestrator == "client":
        (called,) = functions_in(plan.wraps[index], workflow)
    inside = called in sources.handlers  # otherwise connectors call the function itself
    annotations = sources.stack.functions[called].annotations if called and inside else {}
    return {key: annotations[key] for key in sorted(TRIGGERS & annotations.keys())}


def _of_languages(functions: Iterable[StackFunction]) -> dict[str, str]:
    """Return the build arguments for the languages of `functions`."""
    used = {language for each in functions if (language := language_of(each))}
    return {name: value for each in used for name, value in each.build_args.items()}


def _packages(functions: Iterable[StackFunction]) -> dict[str, str]:
    """Return the build argument with all Debian packages of `functions`, if there are any."""
    named = list[str]()
    for function in functions:
        named += language.packages if (language := language_of(function)) else ()
        named += function.build_args.get(PACKAGES, "").split()
        named += chain.from_iterable(build_options()[each] for each in function.build_options)
    return {PACKAGES: " ".join(dict.fromkeys(named))} if named else {}


def _of_entry(plan: Plan, sources: Sources) -> dict[str, str]:
    """Return the variables that only the entry wrap needs, which runs a state machine."""
    found, workflow = _sized_for(sources.folder), sources.folder.workflow
    if plan.slo_ms:
        found[_SLO_VARIABLE] = f"{plan.slo_ms:g}"
    variables = sources.variables(workflow.functions).values()
    limits = [each[_STATE_BYTES] for each in variables if each.get(_STATE_BYTES)]
    if workflow.machine is not None and limits:  # a wrap refuses what is no number
        found[_STATE_BYTES] = min(limits, key=lambda text: int(text) if text.isdecimal() else 0)
    return found


def _sized_for(folder: WorkflowFolder) -> dict[str, str]:
    """Return the size of the largest example request of the folder, if there is one."""
    with suppress(ChironError):
        largest = max(len(payload.content) for payload in folder.payloads())
        return {"WRAP_REQUEST_BYTES": str(max(1, largest))}
    return {}
