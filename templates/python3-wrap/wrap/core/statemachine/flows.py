"""How the fields of a state are evaluated: in its query language, and in which context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .chance import Chance
from .context import Context, timestamp
from .expressions import Evaluator
from .path_flow import PathFlow
from .query_flow import QueryFlow
from .visits import Visit


class Flows:
    """The data flow of the states of one execution.

    Attributes
    ----------
    context
        The context object, but for what changes from state to state. A test of a state may give
        fields of `State` here, for states outside of Map and Parallel.
    """

    def __init__(self, chance: Chance, now: Callable[[], float], evaluator: Evaluator) -> None:
        self.context: Mapping[str, Any] = {}
        self._paths = PathFlow(self._context_of, chance)
        self._queries = QueryFlow(self._context_of, now, chance, evaluator)

    def of(self, visit: Visit) -> PathFlow | QueryFlow:
        """What evaluates the fields of a state: its query language says this."""
        return self._queries if "QueryLanguage" in visit.state else self._paths

    def _context_of(self, visit: Visit) -> Context:
        """The context object in a state, and its variables."""
        given = self.context.get("State", {}) if visit.scope.parent is None else {}
        state = {
            "EnteredTime": timestamp(visit.entered),
            "Name": visit.name,
            "RetryCount": sum(visit.retried.values()),
            **given,
        }
        item = visit.scope.item
        fields = {**self.context, "State": state, **({} if item is None else {"Map": item})}
        return Context(fields, visit.scope.variables)
