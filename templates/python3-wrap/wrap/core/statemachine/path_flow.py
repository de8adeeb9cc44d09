"""The data flow of states that are written with JSONPath."""

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
    """Evaluates the fields of states by JSONPath; all methods raise StatesError.

    Args:
        context_of: returns the context object in a state.
        chance: the source of random values.
    """

    #: The name of the error that a value of a wrong type is.
    unfit = "States.Runtime"

    def __init__(self, context_of: Callable[[Visit], Context], chance: Chance) -> None:
        self._context_of = context_of
        self._chance = chance

    def given(self, visit: Visit) -> Any:
        """The input of a task or of branches."""
        given = self._input(visit)
        if "Parameters" not in visit.state:
            return given
        return render(visit.state["Parameters"], given, self._context_of(visit), self._chance)

    def field(
        self, visit: Visit, name: str, default: Any, holder: Mapping[str, Any] | None = None
    ) -> Any:
        """The value of the field `name`, or what the path in the field `name`Path finds.

        `holder` has the field, if the state itself has not.
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
        """What a Map iterates over."""
        visit.given = self._input(visit)
        return self._path(visit, "ItemsPath", visit.given)

    def request(self, visit: Visit, field: str) -> Any:
        """What a Map asks the function in `field`: its ItemReader or ResultWriter."""
        visit.given = self._input(visit)
        template, context = visit.state[field].get("Parameters", {}), self._context_of(visit)
        return render(template, visit.given, context, self._chance)

    def item(self, visit: Visit, item: Mapping[str, Any]) -> Any:
        """What the ItemSelector of a Map makes, where `item` is the context."""
        context = self._context_of(visit).having(Map=item)
        selector = visit.state["ItemSelector"]
        return render(selector, visit.given, context, self._chance, visit.known)

    def batch_input(self, visit: Visit) -> Any:
        """What every batch of a Map gets besides its items."""
        template, context = visit.state["ItemBatcher"]["BatchInput"], self._context_of(visit)
        return render(template, visit.given, context, self._chance, visit.known)

    def chosen(self, visit: Visit) -> Mapping[str, Any] | None:
        """The first rule of a Choice that matches."""
        given, context = self._input(visit), self._context_of(visit)
        rules = (rule for rule in visit.state["Choices"] if matches(rule, given, context))
        return next(rules, None)

    def passed(self, visit: Visit) -> Leaving:
        """What a Pass state ends with."""
        given = self.given(visit)
        return self.output(visit, visit.state.get("Result", given))

    def unchanged(self, visit: Visit, holder: Mapping[str, Any]) -> Leaving:
        """What a state without a result ends with; `holder`, it or its rule, has the Assign."""
        given = self._input(visit)
        return Leaving(self._path(visit, "OutputPath", given), self._assigned(visit, holder, given))

    def output(self, visit: Visit, result: Any) -> Leaving:
        """What a state with a result ends with."""
        assigned = self._assigned(visit, visit.state, result)
        return Leaving(self._path(visit, "OutputPath", self._combined(visit, result)), assigned)

    def caught(self, visit: Visit, catcher: Mapping[str, Any], error: dict[str, str]) -> Leaving:
        """What a state ends with whose error a catcher takes."""
        path = catcher.get("ResultPath", "$")
        output = visit.raw if path is None else put(path, visit.raw, error)
        return Leaving(output, self._assigned(visit, catcher, error))

    def _assigned(self, visit: Visit, holder: Mapping[str, Any], data: Any) -> Mapping[str, Any]:
        """The variables that the Assign of `holder` gives values, of which `data` is the root."""
        if "Assign" not in holder:
            return {}
        context = self._context_of(visit)
        assigned: dict[str, Any] = render(holder["Assign"], data, context, self._chance)
        return assigned

    def _path(self, visit: Visit, field: str, value: Any) -> Any:
        """What a path of the state finds in `value`, which is all of it if there is no path."""
        path = visit.state.get(field, "$")
        if path == "$":
            return value
        if path is None:
            return _NO_INPUT
        return evaluate(path, value, self._context_of(visit))

    def _input(self, visit: Visit) -> Any:
        return self._path(visit, "InputPath", visit.raw)

    def _combined(self, visit: Visit, result: Any) -> Any:
        """A state's input with its result."""
        state = visit.state
        if "ResultSelector" in state:
            context = self._context_of(visit)
            result = render(state["ResultSelector"], result, context, self._chance)
        path = state.get("ResultPath", "$")
        if path == "$":
            return result
        return visit.raw if path is None else put(path, visit.raw, result)
