"""The allowed names of functions, workflows and tasks."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches

from chiron.workflow.errors import ChironError

NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)

#: The name of an emitted output; ``output`` is the task's answer.
OUTPUT_NAME = re.compile(r"(?!output$)[A-Za-z][A-Za-z0-9_-]{0,79}", re.ASCII)

#: The longest name of a state in Amazon States Language, and of a task in the plain form.
STATE_NAME_LIMIT, TASK_NAME_LIMIT = 80, 1000


def check_name(name: object, what: str, path: str) -> str:
    """Return `name` if it is valid for a function or workflow in OpenFaaS, else ``bad-name``."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise ChironError(
        "bad-name",
        f"{what} name {shown(name)} has to match ^[a-z]([-a-z0-9]{{0,61}}[a-z0-9])?$: "
        "lower-case letters, digits and hyphens, at most 63",
        path=path,
    )


def workflow_name(name: object, path: str) -> str:
    """Return the OpenFaaS name of a workflow `name`: lower case, hyphens between the words."""
    if not isinstance(name, str):
        raise ChironError("bad-field", f"{path} has to be a string", path=path)
    return check_name(re.sub(r"[\s_]+", "-", name.strip().lower()), "workflow", path)


def as_workflow_name(text: str) -> str:
    """Convert `text` to an OpenFaaS name; ``workflow`` if nothing is left of it."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    name = words if words[:1].isalpha() else f"workflow-{words}"
    return name[:63].strip("-")


def check_task_name(name: str, path: str, most: int = STATE_NAME_LIMIT) -> str:
    """Return a `name` that is printable, short and without # (NAME#2 is a run); ``bad-name``."""
    wrong = next((c for c in name if c == "#" or not c.isprintable()), None)
    if wrong is not None:
        raise ChironError(
            "bad-name", f"task name {shown(name)} must not contain {wrong!a}", path=path
        )
    if not name.strip() or len(name) > most:
        raise ChironError(
            "bad-name", f"task name {shown(name)} has to have 1 to {most} characters", path=path
        )
    return name


class FunctionNames:
    """Maps the tasks' names of functions to the functions' names in OpenFaaS.

    Args:
        known: functions.json: the workflow's name of a function -> the function's name.
        deployed: returns the functions of stack.yaml, from which a proposal picks the most similar.
    """

    def __init__(
        self, known: Mapping[str, str], deployed: Callable[[], Collection[str]] = tuple
    ) -> None:
        self._known, self._deployed = known, deployed
        self._foreign: dict[str, str] = {}
        self._called: set[str] = set()

    @property
    def uncalled(self) -> tuple[str, ...]:
        """The names in functions.json that no task asked for yet."""
        return tuple(given for given in self._known if given not in self._called)

    def knows(self, given: str) -> bool:
        """Return whether functions.json has a function for the task's name `given`."""
        return given in self._known

    def named(self) -> dict[str, str]:
        """Map all names under which tasks may call functions of functions.json to the functions."""
        self._called.update(self._known)
        its = {given: name for given, name in self._known.items() if ":states:" not in given}
        return {name: name for name in its.values()} | its

    def function(self, given: str, path: str) -> str:
        """Return the function for the task's name `given`; `check` refuses invalid names."""
        self._called.add(given)
        name = self._known.get(given, given)
        if not NAME.fullmatch(name):
            self._foreign.setdefault(given, path)
        return name

    def check(self) -> None:
        """Raise ``bad-name`` for all invalid names of functions, with a functions.json as a fix."""
        if not self._foreign:
            return
        proposal = self.proposal(self._foreign, self._deployed())
        raise ChironError(
            "bad-name",
            "functions of OpenFaaS have lower-case letters, digits and hyphens, at most 63: write "
            f"functions.json beside workflow.json: {json.dumps(proposal, ensure_ascii=False)}",
            path=next(iter(self._foreign.values())),
            functions=self._foreign,
        )

    @staticmethod
    def proposal(given: Iterable[str], deployed: Collection[str]) -> dict[str, str]:
        """Return a functions.json for those of the `given` names that no function can have."""
        return {name: _proposed(name, deployed) for name in given if not NAME.fullmatch(name)}


#: The name of an AWS Lambda function in its ARN, with an optional version or alias.
_OF_LAMBDA = re.compile(r"(?:.*:function:|(?!arn:))([^:]+)(:[^:]+)?", re.DOTALL)

#: The suffix of a service integration that determines when its Task is done.
_PATTERN = re.compile(r"(?<=:)(\w+)\.(sync(:2)?|waitForTaskToken)$")
#: A placeholder of a template, with an optional attribute of the function.
_PLACEHOLDER = re.compile(r"\$\{([^{}]*?)(\.(\w+_)?(arn|name))?\}", re.IGNORECASE)


class AsWritten(FunctionNames):
    """The names of a workflow that is inspected, not run: as in its document."""

    def __init__(self) -> None:
        super().__init__({})

    def named(self) -> dict[str, str]:
        """Return a placeholder, as functions chosen at run time are unknown."""
        return {"any": "any"}

    def function(self, given: str, _path: str) -> str:
        return given


def _proposed(given: str, deployed: Collection[str]) -> str:
    """Return a name for `given`: its last part as an OpenFaaS name, or a similar deployed name."""
    plain = _PLACEHOLDER.sub(_plain, _PATTERN.sub(r"\1", given))
    if of_lambda := _OF_LAMBDA.fullmatch(plain):
        plain = of_lambda[1]
    last = re.split(r"[:/.]", plain.rstrip(":/."))[-1]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "-", last).strip("-").lower()
    shorter = re.sub(r"(?<=.)-(arn|name)$", "", words)
    shortest = re.sub(r"(?<=.)-?(function|lambda)$", "", shorter)
    known = list(filter(NAME.fullmatch, deployed))
    for candidate in (words, shorter, shortest):
        if close := get_close_matches(candidate, known, 1, 0.7):
            return close[0]
    name = shorter if shorter[:1].isalpha() else f"function-{shorter}"
    return name[:63].strip("-")


def _plain(placeholder: re.Match[str]) -> str:
    return placeholder[1].replace(":", ".")


def check_distinct(names: Iterable[str], path: str) -> None:
    """Refuse two task names that a reader cannot distinguish.

    Names are compared after NFKC and case folding, with runs of spaces, hyphens and underscores
    treated as one. So ``Last Px`` and ``last_px`` are alike and ``a-11`` and ``a-1-1`` are not.
    """
    seen: dict[str, str] = {}
    for name in names:
        key = re.sub(r"[\s_-]+", "-", unicodedata.normalize("NFKC", name).casefold())
        if key in seen:
            raise ChironError(
                "alike-names",
                f"tasks {shown(seen[key])} and {shown(name)} normalise to the same name: "
                "rename one",
                path=path,
                functions=(seen[key], name),
            )
        seen[key] = name


def meant(given: str, known: Collection[str]) -> str:
    """Return a hint for the unknown name `given`: the most similar `known` name, or all of them."""
    close = get_close_matches(given, known, 1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def shown(value: object) -> str:
    """Return `value` quoted for a message, in one line of limited length."""
    text = ascii(value) if isinstance(value, str) else f"of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
