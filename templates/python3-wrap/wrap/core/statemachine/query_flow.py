"""The data flow of states in JSONata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .chance import Chance
from .context import Context
from .errors import StatesError
from .expressions import Evaluator, UndefinedError, expression_in
from .functions import Refused
from .limit import look
from .query_functions import query_functions
from .visits import Leaving, Visit

_ERROR = "States.QueryEvaluationError"


class QueryFlow:
    """Evaluates the fields of states by JSONata, with the methods of `PathFlow`.

    Args:
        now: returns the time of the event, in seconds since 1970.
    """

    #: The name of the error for a value of a wrong type.
    unfit = _ERROR

    def __init__(
        self,
        context_of: Callable[[Visit], Context],
        now: Callable[[], float],
        chance: Chance,
        evaluator: Evaluator,
    ) -> None:
        self._context_of = context_of
        self._now = now
        self._chance = chance
        self._evaluator = evaluator
        self._functions = query_functions(chance)

    def given(self, visit: Visit) -> Any:
        return self._field(visit.state, "Arguments", visit.raw, self._names(visit))

    def field(
        self, visit: Visit, name: str, default: Any, holder: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value of the field `name` of `holder`; default: of the state."""
        fields = visit.state if holder is None else holder
        return self._field(fields, name, default, self._names(visit))

    def items(self, visit: Visit) -> Any:
        visit.given = visit.raw
        return self._field(visit.state, "Items", visit.raw, self._names(visit))

    def request(self, visit: Visit, field: str) -> Any:
        visit.given = visit.raw
        return self._field(visit.state[field], "Arguments", {}, self._names(visit))

    def item(self, visit: Visit, item: Mapping[str, Any]) -> Any:
        names = self._names_in(visit, self._context_of(visit).having(Map=item))
        return self._rendered(visit.state["ItemSelector"], "ItemSelector", names)

    def batch_input(self, visit: Visit) -> Any:
        template = visit.state["ItemBatcher"]["BatchInput"]
        return self._rendered(template, "BatchInput", self._names(visit))

    def chosen(self, visit: Visit) -> Mapping[str, Any] | None:
        """Return the first rule of a Choice whose Condition is true."""
        names = self._names(visit)
        for rule in visit.state["Choices"]:
            holds = self._rendered(rule["Condition"], "Condition", names)
            if not isinstance(holds, bool):
                raise StatesError(_ERROR, f"Condition {rule['Condition']!a} is not true or false")
            if holds:
                chosen: Mapping[str, Any] = rule
                return chosen
        return None

    def passed(self, visit: Visit) -> Leaving:
        return self.unchanged(visit, visit.state)

    def unchanged(self, visit: Visit, holder: Mapping[str, Any]) -> Leaving:
        return self._leaving(holder, visit.raw, self._names(visit))

    def output(self, visit: Visit, result: Any) -> Leaving:
        return self._leaving(visit.state, result, self._names(visit, result=result))

    def caught(self, visit: Visit, catcher: Mapping[str, Any], error: dict[str, str]) -> Leaving:
        return self._leaving(catcher, error, self._names(visit, errorOutput=error))

    def _leaving(self, holder: Mapping[str, Any], output: Any, names: Mapping[str, Any]) -> Leaving:
        return Leaving(
            self._field(holder, "Output", output, names), self._field(holder, "Assign", {}, names)
        )

    def _names(self, visit: Visit, **more: Any) -> dict[str, Any]:
        return self._names_in(visit, self._context_of(visit), **more)

    def _names_in(self, visit: Visit, context: Context, **more: Any) -> dict[str, Any]:
        """Return the variables visible to a state's expressions, including ``$states``."""
        states = {"input": visit.raw, "context": context, **more}
        return {**context.variables, "states": states}

    def _field(
        self, holder: Mapping[str, Any], name: str, default: Any, names: Mapping[str, Any]
    ) -> Any:
        return self._rendered(holder[name], name, names) if name in holder else default

    def _rendered(self, template: Any, field: str, names: Mapping[str, Any]) -> Any:
        """Evaluate the expressions in `template`, which is at the path `field` of the state."""
        if isinstance(template, str):
            expression = expression_in(template)
            return template if expression is None else self._value(expression, field, names)
        if isinstance(template, dict):
            return {
                name: self._rendered(each, f"{field}/{name}", names)
                for name, each in template.items()
            }
        if isinstance(template, list):
            return [
                self._rendered(each, f"{field}[{index}]", names)
                for index, each in enumerate(template)
            ]
        return template

    def _value(self, expression: str, field: str, names: Mapping[str, Any]) -> Any:
        look()
        try:
            return self._evaluator.evaluate(
                expression, names, self._functions, self._now(), self._chance.getrandbits(64)
            )
        except (ValueError, TypeError, Refused, StatesError) as error:
            look()  # a timeout here is the request's timeout
            reason = error.cause if isinstance(error, StatesError) else str(error)
            said = f"threw an error during evaluation. {reason}"
            if isinstance(error, UndefinedError):
                said = "returned nothing (undefined)."
            place = f"The JSONata expression '{expression.strip()}' specified for the field"
            raise StatesError(_ERROR, f"{place} '{field}' {said}") from error
