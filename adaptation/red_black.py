"""Replaces the version that serves by another one without loss: switch, drain, remove."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from adaptation.candidate import Candidate
from adaptation.events import Event, Tell
from adaptation.latency import Wait
from adaptation.version import Serving, serving
from generator.annotations import MODEL, ROLE, WORKFLOW
from generator.deploy import remove_all
from generator.settings import client_timeout_s
from openfaas.client import Gateway
from openfaas.objects import FunctionSpec, FunctionStatus
from workflow.errors import ChironError

#: How long the entry may take to become the new version, and how many answers in a row say that it
#: has: while replicas are exchanged one by one, old and new ones answer.
SWITCH_S, _ANSWERS = 60.0, 10
_POLL_S = 0.05
#: Where a wrap tells its name, which is not that of the function where it serves as the entry.
_WRAP_PATH, _WRAP_TIMEOUT_S = "/_/wrap", 5.0


@dataclass(frozen=True)
class RedBlack:
    """Switches a workflow's entry between versions; `wait` lets time pass while requests drain."""

    gateway: Gateway
    wait: Wait
    tell: Tell
    switch_s: float = SWITCH_S

    def switch(self, candidate: Candidate, name: str, old: Serving | None) -> None:
        """Have `candidate` answer under `name`, as `old` did so far, and remove `old`.

        Clients notice nothing: the platform exchanges the entry's replicas while the old ones go
        on serving, and each replica calls the wraps of its own version. Whoever is interrupted
        leaves both versions, and `settle` does the rest.

        Raises
        ------
        ChironError
            ``not-switched``, or the gateway's own: then `old` serves, and `candidate` is removed.
        """
        try:
            self.gateway.deploy(_as_entry(candidate.entry, name))
            self._confirm(name, lambda wrap: wrap == candidate.entry.service)
        except ChironError as error:
            self._roll_back(candidate, name, old)
            raise error from None
        self.tell(Event("switched", f"{name} is version {candidate.version}"))
        annotations = candidate.entry.annotations
        current = serving(self.gateway, annotations[WORKFLOW], annotations[MODEL])
        if current:
            self.settle(current)

    def settle(self, current: Serving) -> None:
        """Remove the functions of other versions, once no request can need them any more.

        Raises
        ------
        ChironError
            ``not-switched`` where `current` does not serve yet, whatever its entry's annotations
            say: then all stay.
        """
        if not current.others:
            return
        self._confirm(current.entry.name, current.is_wrap)
        self._drain(current.drain_s)
        names = [function.name for function in current.others]
        remove_all(self.gateway, names)
        self.tell(Event("removed", f"removed {', '.join(names)}", {"functions": names}))

    def _roll_back(self, candidate: Candidate, name: str, old: Serving | None) -> None:
        try:
            if old is None:
                remove_all(self.gateway, [name, *candidate.created])
                return
            self.gateway.deploy(_as_it_was(old.entry))
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

    def _confirm(self, name: str, right: Callable[[str | None], bool]) -> None:
        """Return once the wrap behind the function `name` is `right`, time after time."""
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
        """What the wrap calls itself that runs as the function `name`; None where none says so."""
        try:
            answer = self.gateway.get(name, _WRAP_PATH, _WRAP_TIMEOUT_S)
        except ChironError as error:
            if error.code != "timeout":
                raise
            return None
        return answer.text if answer.ok else None


def _as_entry(candidate: FunctionSpec, name: str) -> FunctionSpec:
    """What runs as `candidate`, as the function that clients call."""
    annotations = {**candidate.annotations, ROLE: "entry"}
    return candidate.model_copy(update={"service": name, "annotations": annotations})


def _as_it_was(function: FunctionStatus) -> FunctionSpec:
    """The deployment that made `function`."""
    fields = function.model_dump(include=set(FunctionSpec.model_fields))
    return FunctionSpec(service=function.name, **fields)
