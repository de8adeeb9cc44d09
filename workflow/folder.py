"""A workflow folder: the workflow, stack.yaml, functions/ and payloads in one place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.asl import parse_states
from chiron.workflow.asl_resources import is_call
from chiron.workflow.buckets import check_own_triggers, is_buckets, own_triggers, parse_buckets
from chiron.workflow.constraints import Constraints, read_constraints
from chiron.workflow.dag import parse_dag
from chiron.workflow.documents import parse_json, read_json
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.forms import WORKFLOW_FILE, at_origins, known_form, read_written, workflow_file
from chiron.workflow.model import Workflow
from chiron.workflow.names import FunctionNames, as_workflow_name, check_name
from chiron.workflow.payloads import (
    PAYLOAD_FILE,
    PAYLOADS_FOLDER,
    Payload,
    payload_files,
    read_payloads,
    unread_payloads,
)
from chiron.workflow.profile import Profile
from chiron.wrap.core.buckets.own import file_of

#: Maps the tasks' name of a function to its OpenFaaS name, if the former is not valid there.
FUNCTIONS_FILE = "functions.json"
#: The maximum number of links followed below one place: links to folders with links multiply.
_LINKS = 1000


@dataclass(frozen=True)
class WorkflowFolder:
    """The user's files; opening the folder reads only the workflow itself.

    Attributes:
        uncalled: the names in functions.json that no task calls.
    """

    path: Path
    workflow: Workflow
    uncalled: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: Path) -> WorkflowFolder:
        """Open the folder at `path`; raise ``missing-file`` if it has no workflow.json or .yaml."""
        if not path.is_dir():
            message = f"workflow folder {path} is not there: name the folder that has your"
            raise ChironError("missing-file", f"{message} {WORKFLOW_FILE}")
        file = workflow_file(path)
        if file is None:
            message = f"folder {path} has no {WORKFLOW_FILE}: name the folder that has it, or make"
            raise ChironError("missing-file", f"{message} it with chiron init {path}")
        written, names = read_written(file), _function_names(path)
        with written.placing():
            workflow = parse_workflow(written.document, default_name(path), names)
            found = cls(path, workflow, names.uncalled)
            if found.trigger_files:
                check_own_triggers(workflow.buckets, path)
            return found

    @property
    def text(self) -> str:
        """The workflow as JSON: the text of workflow.json, or the translation of another form."""
        file = workflow_file(self.path) or self.path / WORKFLOW_FILE
        if file.name == WORKFLOW_FILE:
            return file.read_text(encoding="utf-8")
        return json.dumps(known_form(read_written(file).document).document, indent=1) + "\n"

    @property
    def stack_file(self) -> Path:
        """The path of the functions' ordinary OpenFaaS stack.yaml."""
        return stack_file_in(self.path)

    @property
    def trigger_files(self) -> list[Path]:
        """The files of user-written triggers; raises ``bad-link`` if a link leaves the folder."""
        triggers = own_triggers(self.workflow.buckets).values()
        files = [self.path / name for name in sorted({file_of(each) for each in triggers})]
        for file in files:
            check_links(file, self.path)
        return files

    def constraints(self) -> Constraints:
        """Return constraints.json, checked against the workflow; empty without the file."""
        constraints, faults = read_constraints(self.path), Faults()
        with faults.noting():
            constraints.check_functions(self.workflow.functions)
        with faults.noting():
            constraints.unchecked(self.workflow)
        with faults.noting():
            payload_files(self.path, constraints.weights)
        faults.raise_all()
        return constraints

    def payloads(self) -> tuple[Payload, ...]:
        """Return the example requests, weighted by constraints.json; see `read_payloads`."""
        for place in (PAYLOAD_FILE, PAYLOADS_FOLDER):
            check_links(self.path / place, self.path)
        return read_payloads(self.path, self.constraints().weights)

    def expected(self, profile: Profile, request: bytes) -> ExpectedAnswer | None:
        """Return the answer to `request` in `profile`, less the exclusions of constraints.json."""
        known = profile.answer_to(request)
        return known and known.without(self.constraints().unchecked(self.workflow))

    def warnings(self) -> Iterator[str]:
        """Yield what of functions.json and the payloads has no effect, or not the likely one."""
        if self.uncalled:
            names = ", ".join(self.uncalled[:8])
            yield f"{self.path / FUNCTIONS_FILE} names {names}, which no task calls: without effect"
        if not payload_files(self.path, {}):
            yield f"{self.path / PAYLOAD_FILE} is not there: functions are asked with {{}}"
        for file in unread_payloads(self.path):
            yield f"{file} is no payload: end its name with .json"
        for payload in self.payloads():
            try:
                parse_json(payload.content, str(self.path / payload.name))
            except ChironError as error:
                yield f"{error}; it is sent as it is"


def stack_file_in(folder: Path) -> Path:
    """Return the path of the stack.yaml in `folder`; stack.yml if that alone is there."""
    file, other = folder / "stack.yaml", folder / "stack.yml"
    return other if other.is_file() and not os.path.lexists(file) else file


def parse_workflow(
    document: Any, name: str = "workflow", functions: FunctionNames | None = None
) -> Workflow:
    """Parse a document of any form; `name` is the default name of the workflow."""
    found = known_form(document)
    with at_origins(found.origins):
        return _parser(found.document)(found.document, name, functions)


def _parser(document: dict[str, Any]) -> Callable[..., Workflow]:
    if "States" in document:
        return parse_states
    return parse_buckets if is_buckets(document) else parse_dag


def _function_names(path: Path) -> FunctionNames:
    """Return the names of functions.json; those of stack.yaml serve for suggestions."""
    return FunctionNames(read_function_names(path), partial(_deployed, stack_file_in(path)))


def read_function_names(path: Path) -> dict[str, str]:
    """Return the content of functions.json in the folder `path`; empty if there is no such file."""
    file = path / FUNCTIONS_FILE
    known = read_json(file, "function names") if file.exists() else {}
    if not isinstance(known, dict) or not all(isinstance(name, str) for name in known.values()):
        message = f'{file} has to be an object: {{"name in the workflow": "function"}}'
        raise ChironError("bad-document", message)
    for given, name in known.items():
        check_name(name, "function", f"{FUNCTIONS_FILE}: {given}")
        if is_call(given):
            message = f"remove {given} from {file}: FunctionName names the function of each task"
            raise ChironError("bad-name", message, path=f"{FUNCTIONS_FILE}: {given}")
    return known


def _deployed(stack: Path) -> tuple[str, ...]:
    """Return the functions of a stack.yaml; empty if unreadable, which is reported elsewhere."""
    import yaml  # loaded on use: only error messages need it

    with suppress(OSError, ValueError, yaml.YAMLError, AttributeError, RecursionError):
        return tuple(map(str, yaml.safe_load(stack.read_text(encoding="utf-8"))["functions"]))
    return ()


def check_links(place: Path, folder: Path, *functions: str) -> None:
    """Refuse symbolic links at and below `place` that lead out of the workflow folder `folder`.

    The files there are read, copied into images and sent to functions. Links in somebody else's
    folder may lead to the user's private files. If stack.yaml itself names a `place` elsewhere, as
    with ``../``, links may also lead to that place.

    Raises ``bad-link``, with the link, also for a dangling link and for a link to its own parents.
    """
    limits = [folder.resolve()]
    if not _lexical(place).is_relative_to(_lexical(folder)):
        limits.append(_lexical(place).resolve())
    links = 0
    pending: list[tuple[Path, tuple[Path, ...]]]
    pending = [(place, ())] if os.path.lexists(place) else []
    while pending:
        path, above = pending.pop()
        try:
            real = path.resolve(strict=True)
            inside = list(path.iterdir()) if real.is_dir() else []
        except PermissionError as error:
            message = f"{error.filename} cannot be read: {error.strerror}"
            raise ChironError("missing-file", message, functions=functions) from None
        except (OSError, RuntimeError):
            raise _bad_link(path, "leads nowhere, or through too many links", functions) from None
        links += path.is_symlink()
        if not any(real.is_relative_to(limit) for limit in limits):
            raise _bad_link(path, f"leads out of the workflow folder {folder}", functions)
        if real in above or links > _LINKS:
            raise _bad_link(path, "leads to where it is, or to more links than may be", functions)
        pending += [(inner, (*above, real)) for inner in inside]


def _lexical(path: Path) -> Path:
    """Return the absolute `path` without ``..``, resolved as text, not through links."""
    return Path(os.path.abspath(path))  # noqa: PTH100  (Path.absolute keeps them)


def _bad_link(path: Path, what: str, functions: tuple[str, ...]) -> ChironError:
    message = f"link {path} {what}: put the files themselves there"
    return ChironError("bad-link", message, functions=functions)


def default_name(path: Path) -> str:
    """Return the workflow name derived from a folder or file, for a workflow without a name.

    If two folders had one name, each deployment would replace the other.
    """
    return as_workflow_name((path if path.is_dir() else path.with_suffix("")).resolve().name)
