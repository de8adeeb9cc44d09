"""Blue-green switch: replaces the serving version without loss, and redeploys lost wraps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from requests import Response

from chiron.adaptation.events import Event, Tell
from chiron.adaptation.latency import Wait
from chiron.adaptation.scaling import Bounds
from chiron.adaptation.version import VERSION, Candidate, Serving, serving
from chiron.deployment.deploy import remove_all
from chiron.generator.annotations import PLANNER, ROLE, ROUTE, SUCCESSOR, WORKFLOW
from chiron.generator.given import cut_variables, given_of
from chiron.generator.settings import client_timeout_s
from chiron.openfaas.client import Gateway
from chiron.openfaas.endings import TAIL, maybe_by_memory
from chiron.openfaas.objects import FunctionSpec, FunctionStatus, Resources
from chiron.openfaas.readiness import wait_ready
from chiron.openfaas.sharing import TRIGGERS, without_triggers
from chiron.workflow.errors import ChironError
from chiron.workflow.tracing import KEY_ANNOTATION, trace_header

#: The longest time for the entry to become the new version, and the answers in a row that confirm
#: that: while replicas are exchanged one by one, old and new replicas answer.
SWITCH_S, _ANSWERS = 60.0, 10
_POLL_S = 0.05
#: The path at which a wrap returns its own name, not the name of the function that it serves as.
_WRAP_PATH, _WRAP_TIMEOUT_S = "/_/wrap", 5.0
#: The path at which an entry receives the target to forward its requests to.
_ROUTE_PATH = "/_/route"
_SHOWN = 200
#: The longest time for a wrap to get ready, in seconds, including a start from zero replicas.
_READY_S = 60.0
_HEALTH_PATH = "/_/health"
#: The memory limit up to which `repair` doubles a wrap's memory, in MiB.
_MOST_MIB = 8192


@dataclass(frozen=True)
class BlueGreen:
    """Switches a workflow's entry between versions; `wait` sleeps while requests drain."""

    gateway: Gateway
    wait: Wait
    tell: Tell
    switch_s: float = SWITCH_S

    def switch(
        self, candidate: Candidate, name: str, old: Serving | None, *, by_route: bool = False
    ) -> None:
        """Let `candidate` answer under `name` instead of `old`, and remove `old`.

        Clients notice nothing: the platform exchanges the entry's replicas while the old replicas
        serve. Each replica calls the wraps of its own version. `by_route` is for a platform that
        would remove the old replicas first: the entry stays, and forwards its requests. An
        interruption leaves both versions, and `settle` does the rest.

        Raises ``not-switched``, or the gateway's own error: then `old` serves, and `candidate` is
        removed.
        """
        called = old.called if old else None
        try:
            stay = {n: f for n, f in candidate.before.items() if by_route or f is not called}
            keep_replicas(self.gateway, stay, self.tell, self.switch_s)
            if old and by_route:
                self._put_behind(candidate, old.called)
            else:
                self.gateway.deploy(_in_role("entry", candidate.entry, name))
                if called:
                    self._await_told(name, candidate.version)
                    keep_replicas(self.gateway, {name: called}, self.tell, self.switch_s)
            self._confirm(name, lambda wrap: wrap == candidate.entry.service)
        except ChironError as error:
            self._roll_back(candidate, name, old, by_route=by_route)
            raise error from None
        stays = _stays(candidate, old.called) if old and by_route else ""
        self.tell(Event("switched", f"{name} is version {candidate.version}{stays}"))
        for line in candidate.lost:
            self.tell(Event("kept", line))
        annotations = candidate.entry.annotations
        current = serving(self.gateway, annotations[WORKFLOW], annotations[PLANNER])
        if current:
            self.settle(current)

    def settle(self, current: Serving) -> None:
        """Remove the functions of other versions once no request can need them.

        An entry that has lost its route gets the route again.

        Raises ``not-switched`` if `current` does not serve yet, despite its entry's annotations:
        then all functions stay.
        """
        name = current.called.name
        if current.behind and self._wrap_behind(name) != current.behind:
            self._hand(current.called, current.behind)
            self.tell(Event("switched", f"{name} hands its requests on to {current.behind} again"))
        if not current.others:
            return
        self._confirm(name, current.is_wrap)
        self._drain(current.drain_s)
        names = [function.name for function in current.others]
        remove_all(self.gateway, names)
        self.tell(Event("removed", f"removed {', '.join(names)}", {"functions": names}))

    def _put_behind(self, candidate: Candidate, called: FunctionStatus) -> None:
        """Deploy `candidate` as a successor, and let `called` forward its requests to it."""
        name = candidate.entry.service
        self.gateway.deploy(_in_role(SUCCESSOR, candidate.entry, name))
        wait_ready(self.gateway, name, self.switch_s)
        self._hand(called, name)

    def _hand(self, called: FunctionStatus, behind: str) -> None:
        """Let `called` forward its requests to `behind`, or answer them itself if that is empty."""
        key = trace_header(called.annotations.get(KEY_ANNOTATION, ""))
        answer = self.gateway.invoke(
            called.name, behind.encode(), key, _WRAP_TIMEOUT_S, _ROUTE_PATH
        )
        if not answer.ok:
            raise ChironError(
                "not-switched",
                f"{called.name} does not hand its requests on ({answer.status_code}: "
                f"{answer.text.strip()[:_SHOWN]}): --allow-outage deploys it again instead",
                functions=[called.name],
                status=502,
            )

    def _roll_back(
        self, candidate: Candidate, name: str, old: Serving | None, *, by_route: bool
    ) -> None:
        try:
            if old is None:
                remove_all(self.gateway, [name, *candidate.created])
                return
            if not by_route:
                self.gateway.deploy(as_it_was(old.called, old.behind))
            elif self._wrap_behind(name) in (candidate.entry.service, None):
                self._hand(old.called, old.behind)
            self._confirm(name, lambda wrap: wrap != candidate.entry.service)
            self._drain(client_timeout_s(candidate.entry.env_vars))
            remove_all(self.gateway, candidate.created)
        except ChironError as error:
            self.tell(Event("failed", f"rolling back: {error.message}; both versions stay"))
        else:
            self.tell(Event("rolled-back", f"{name} is what it was; the new version is removed"))

    def _drain(self, seconds: float) -> None:
        if seconds:
            message = f"waiting {seconds:g} s for requests that have begun"
            self.tell(Event("draining", message, {"seconds": seconds}))
            self.wait(seconds)

    def _await_told(self, name: str, version: str) -> None:
        """Return once the gateway describes `name` as `version`: faas-netes describes from a cache.

        Until then it may tell replicas that the deployment has just taken away.
        """
        deadline = time.monotonic() + self.switch_s
        while self.gateway.describe(name).annotations.get(VERSION) != version:
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_S)

    def _confirm(self, name: str, right: Callable[[str | None], bool]) -> None:
        """Return once the wrap of the function `name` is `right` in _ANSWERS answers in a row."""
        deadline = time.monotonic() + self.switch_s
        answers = 0
        while answers < _ANSWERS:
            wrap = self._wrap_behind(name)
            answers = answers + 1 if right(wrap) else 0
            if not answers and time.monotonic() > deadline:
                raise ChironError(
                    "not-switched",
                    f"function {name} runs {wrap or 'no wrap that answers'} after "
                    f"{self.switch_s:g} s, and not the one that was deployed: "
                    f"see faas-cli logs {name}",
                    functions=[name],
                    status=504,
                )
            time.sleep(_POLL_S)

    def _wrap_behind(self, name: str) -> str | None:
        """Return the name of the wrap that runs as the function `name`; None without an answer."""
        answer = _asked(self.gateway, name, _WRAP_PATH, _WRAP_TIMEOUT_S)
        return answer.text if answer else None


def _in_role(role: str, candidate: FunctionSpec, name: str) -> FunctionSpec:
    """Return `candidate` as the function `name`; only an entry keeps its connectors' triggers."""
    kept = candidate.annotations
    annotations = {**(kept if role == "entry" else without_triggers(kept)), ROLE: role}
    return candidate.model_copy(update={"service": name, "annotations": annotations})


def _stays(candidate: Candidate, called: FunctionStatus) -> str:
    """Return which triggers of `called`, which is not redeployed, differ from the candidate's."""
    old, new = called.annotations, candidate.entry.annotations
    differ = sorted(key for key in TRIGGERS if old.get(key) != new.get(key))
    if not differ:
        return ""
    return f"; its {' and '.join(differ)} stay as they were: --allow-outage deploys it again"


def as_it_was(function: FunctionStatus, behind: str = "") -> FunctionSpec:
    """Return the deployment of `function`, which from its start forwards to `behind`, if given.

    Raises ``unknown-variables`` if the gateway returns only a part of their values.
    """
    given = given_of(function.annotations)
    cut = cut_variables(function.env_vars, (given and given.environment) or {})
    if cut:
        raise ChironError(
            "unknown-variables",
            f"{function.name} cannot be deployed as it was: the gateway tells only the beginning "
            f"of {', '.join(cut)}; deploy the workflow again with chiron deploy",
            functions=[function.name],
            status=502,
        )
    fields = function.model_dump(include=set(FunctionSpec.model_fields))
    fields["env_vars"] = {**function.env_vars, ROUTE: behind} if behind else function.env_vars
    return FunctionSpec(service=function.name, **fields)


def repair(gateway: Gateway, current: Serving, tell: Tell) -> None:
    """Redeploy the wraps of `current` that have ended, if the gateway does not start them again.

    On other gateways, a wrap without a replica was scaled to zero, and stays so. If the end of a
    wrap's log points to its memory limit, it gets twice the memory.

    Raises the gateway's own error, or ``not-ready``.
    """
    gone = [function for function in current.wraps if not function.replicas]
    for function in gone if gone and gateway.info().removes_first else ():
        # A call may start a wrap that was scaled to zero.
        if _asked(gateway, function.name, _HEALTH_PATH, _READY_S):
            continue
        behind = current.behind if function is current.called else ""
        spec = as_it_was(function, behind)
        mib = function.limits.memory_mib if function.limits else 0
        why = "has ended, and the gateway does not start it again"
        wanted_mib = min(2 * mib, _MOST_MIB)
        if mib < wanted_mib and maybe_by_memory(gateway.logs(function.name, TAIL)):
            why = f"was killed, probably by its memory limit of {mib} MiB"
            spec = _with_memory(spec, wanted_mib)
            mib = wanted_mib
        figures = {"function": function.name, "memory_mib": mib}
        tell(Event("gone", f"{function.name} {why}: deploying it again, with {mib} MiB", figures))
        gateway.deploy(spec)
        wait_ready(gateway, function.name, _READY_S)
        tell(Event("repaired", f"{function.name} answers again", figures))


def _asked(gateway: Gateway, name: str, path: str, timeout_s: float) -> Response | None:
    """Return the good answer of the function `name` to GET of `path`; None without one."""
    try:
        answer = gateway.get(name, path, timeout_s)
        return answer if answer.ok else None
    except ChironError as error:
        if error.code != "timeout":
            raise
        return None


def _with_memory(spec: FunctionSpec, mib: int) -> FunctionSpec:
    limits = (spec.limits or Resources()).model_copy(update={"memory": f"{mib}Mi"})
    variables = {**spec.env_vars, "WRAP_MEMORY_MIB": str(mib)}
    return spec.model_copy(update={"limits": limits, "env_vars": variables})


#: The period at which ready replicas are counted, in seconds.
_LOOK_S = 0.2


def replicas_set(before: FunctionStatus) -> int:
    """Return the replicas of a wrap if more than its own stack.yaml began with; else 0.

    A smaller or equal count comes from its plan: the next plan has its own count.
    """
    given = given_of(before.annotations)
    began = Bounds.of(given.labels if given else {}).least
    return before.replicas if before.replicas > began else 0


def keep_replicas(
    gateway: Gateway, before: Mapping[str, FunctionStatus], tell: Tell, within_s: float
) -> None:
    """Scale functions to the replicas set on those `before` them, and wait until they are ready.

    Functions with as many replicas stay unchanged. Functions not ready within `within_s` seconds
    cause an event.
    """
    wanted = dict[str, int]()
    for name, function in before.items():
        count = replicas_set(function)
        if gateway.describe(name).replicas < count:
            wanted[name] = count
            gateway.scale(name, count)
    until = time.monotonic() + within_s
    while missing := _missing(gateway, wanted):
        if time.monotonic() > until:
            message = f"{', '.join(missing)}: fewer replicas are ready than before"
            tell(Event("kept", message, {"functions": list(missing)}))
            return
        time.sleep(_LOOK_S)


def _missing(gateway: Gateway, wanted: Mapping[str, int]) -> Sequence[str]:
    """Return the functions with fewer ready replicas than wanted."""
    ready = {name: gateway.describe(name).available_replicas for name in wanted}
    return [name for name, count in wanted.items() if ready[name] < count]
