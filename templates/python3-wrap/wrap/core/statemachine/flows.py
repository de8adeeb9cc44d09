"""Chooses the data flow of a state, by its query language, and builds context objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .chance import Chance
from .context import Context, timestamp
from .expressions import Evaluator
from .path_flow import PathFlow
from .query_flow import QueryFlow
from .visits import Visit

#: The types of states with a RetryCount, as on AWS: those that may have a Retry.
_RETRIED = ("Task", "Parallel", "Map")


class Contexts:
    """Builds the context objects of the states of one execution."""

    def __init__(self) -> None:
        #: The fields that are the same in all states. A test of one state may set fields of `State`
        #: here, or a whole `Context`, for states outside of Map and Parallel.
        self.fields: Mapping[str, Any] = {}
        #: The time of the event, in seconds since 1970.
        self.now = 0.0

    @property
    def workflow(self) -> str:
        name: str = self.fields.get("StateMachine", {}).get("Name", "")
        return name

    def of(self, visit: Visit) -> Context:
        is_outside = visit.scope.parent is None
        if is_outside and isinstance(self.fields, Context):
            return Context(self.fields, visit.scope.variables)
        given = self.fields.get("State", {}) if is_outside else {}
        state: dict[str, Any] = {"EnteredTime": timestamp(visit.entered), "Name": visit.name}
        if visit.state["Type"] in _RETRIED:
            state["RetryCount"] = sum(visit.retried.values())
        item = visit.scope.item
        fields = {**self.fields, "State": state | given, **({} if item is None else {"Map": item})}
        return Context(fields, visit.scope.variables)


class Flows:
    """The data flow of the states of one execution.

    Its flows do not refer back to it: a cycle would keep megabytes until a garbage collection.
    """

    def __init__(self, chance: Chance, contexts: Contexts, evaluator: Evaluator) -> None:
        self._paths = PathFlow(contexts.of, chance)
        self._queries = QueryFlow(contexts.of, lambda: contexts.now, chance, evaluator)

    def of(self, visit: Visit) -> PathFlow | QueryFlow:
        return self._queries if "QueryLanguage" in visit.state else self._paths
