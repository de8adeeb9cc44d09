"""The data flow of states in JSONPath."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .chance import Chance
from .choices import matches
from .context import Context
from .paths import evaluate, put
from .templates import render, resolve
from .visits import Leaving, Visit

_NO_INPUT: dict[str, Any] = {}


class PathFlow:
    """Evaluates the fields of states by JSONPath; all methods raise StatesError."""

    #: The name of the error for a value of a wrong type.
    unfit = "States.Runtime"

    def __init__(self, context_of: Callable[[Visit], Context], chance: Chance) -> None:
        self._context_of = context_of
        self._chance = chance

    def given(self, visit: Visit) -> Any:
        """Return the input of a task or of branches."""
        given = self._input(visit)
        if "Parameters" not in visit.state:
            return given
        return render(visit.state["Parameters"], given, self._context_of(visit), self._chance)

    def field(
        self, visit: Visit, name: str, default: Any, holder: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value of the field `name`, or the value at the path in its ...Path variant.

        `holder` is the object with the field; default: the state.
        """
        fields = visit.state if holder is None else holder
        path = fields.get(f"{name}Path")
        if path is None:
            return fields.get(name, default)
        given = self._input(visit)
        if path.startswith("States."):
            return resolve(path, given, self._context_of(visit), self._chance)
        return evaluate(path, given, self._context_of(visit))

    def items(self, visit: Visit) -> Any:
        visit.given = self._input(visit)
        return self._path(visit, "ItemsPath", visit.given)

    def request(self, visit: Visit, field: str) -> Any:
        """Return the request to the function in `field`: ItemReader or ResultWriter."""
        visit.given = self._input(visit)
        template, context = visit.state[field].get("Parameters", {}), self._context_of(visit)
        return render(template, visit.given, context, self._chance)

    def item(self, visit: Visit, item: Mapping[str, Any]) -> Any:
        """Return the ItemSelector's value; `item` is the context object's ``Map``."""
        context = self._context_of(visit).having(Map=item)
        selector = visit.state["ItemSelector"]
        return render(selector, visit.given, context, self._chance, visit.known)

    def batch_input(self, visit: Visit) -> Any:
        template, context = visit.state["ItemBatcher"]["BatchInput"], self._context_of(visit)
        return render(template, visit.given, context, self._chance, visit.known)

    def chosen(self, visit: Visit) -> Mapping[str, Any] | None:
        """Return the first matching rule of a Choice."""
        given, context = self._input(visit), self._context_of(visit)
        rules = (rule for rule in visit.state["Choices"] if matches(rule, given, context))
        return next(rules, None)

    def passed(self, visit: Visit) -> Leaving:
        given = self.given(visit)
        return self.output(visit, visit.state.get("Result", given))

    def unchanged(self, visit: Visit, holder: Mapping[str, Any]) -> Leaving:
        """Return output and variables of a state without a result; `holder` has the Assign."""
        given = self._input(visit)
        return Leaving(self._path(visit, "OutputPath", given), self._assigned(visit, holder, given))

    def output(self, visit: Visit, result: Any) -> Leaving:
        """Return the output and variables of a state with a result."""
        assigned = self._assigned(visit, visit.state, result)
        return Leaving(self._path(visit, "OutputPath", self._combined(visit, result)), assigned)

    def caught(self, visit: Visit, catcher: Mapping[str, Any], error: dict[str, str]) -> Leaving:
        """Return the output and variables of a state whose error `catcher` takes."""
        path = catcher.get("ResultPath", "$")
        output = visit.raw if path is None else put(path, visit.raw, error)
        return Leaving(output, self._assigned(visit, catcher, error))

    def _assigned(self, visit: Visit, holder: Mapping[str, Any], data: Any) -> Mapping[str, Any]:
        """Return the variables that the Assign of `holder` sets; its paths begin at `data`."""
        if "Assign" not in holder:
            return {}
        context = self._context_of(visit)
        assigned: dict[str, Any] = render(holder["Assign"], data, context, self._chance)
        return assigned

    def _path(self, visit: Visit, field: str, value: Any) -> Any:
        """Return the part of `value` at the path in `field`; all of it without a path."""
        path = visit.state.get(field, "$")
        if path == "$":
            return value
        if path is None:
            return _NO_INPUT
        return evaluate(path, value, self._context_of(visit))

    def _input(self, visit: Visit) -> Any:
        return self._path(visit, "InputPath", visit.raw)

    def _combined(self, visit: Visit, result: Any) -> Any:
        state = visit.state
        if "ResultSelector" in state:
            context = self._context_of(visit)
            result = render(state["ResultSelector"], result, context, self._chance)
        path = state.get("ResultPath", "$")
        if path == "$":
            return result
        return visit.raw if path is None else put(path, visit.raw, result)
