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
)
from chiron.workflow.profile import Profile
from chiron.wrap.core.buckets.own import file_of

#: What the tasks call a function, where that is no name for OpenFaaS -> the function's name.
FUNCTIONS_FILE = "functions.json"
#: Most links in one handler folder: those to folders with links multiply.
_LINKS = 1000


@dataclass(frozen=True)
class WorkflowFolder:
    """What a user writes; only the workflow itself is read when the folder is opened."""

    path: Path
    workflow: Workflow

    @classmethod
    def open(cls, path: Path) -> WorkflowFolder:
        """The folder at `path`; ``missing-file`` where it has no workflow.json or .yaml."""
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
            found = cls(path, workflow)
            if found.trigger_files:
                check_own_triggers(workflow.buckets, path)
            return found

    @property
    def text(self) -> str:
        """The workflow as JSON: what its file has, or that translated."""
        file = workflow_file(self.path) or self.path / WORKFLOW_FILE
        if file.name == WORKFLOW_FILE:
            return file.read_text(encoding="utf-8")
        return json.dumps(known_form(read_written(file).document).document, indent=1) + "\n"

    @property
    def stack_file(self) -> Path:
        """Where the ordinary OpenFaaS stack.yaml of the functions is."""
        return self.path / "stack.yaml"

    @property
    def trigger_files(self) -> list[Path]:
        """The files of triggers that the user wrote; ``bad-link`` where one leads elsewhere."""
        triggers = own_triggers(self.workflow.buckets).values()
        files = [self.path / name for name in sorted({file_of(each) for each in triggers})]
        for file in files:
            check_links(file, self.path)
        return files

    def constraints(self) -> Constraints:
        """What is in constraints.json, checked against the workflow; nothing without the file."""
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
        """The example requests, with the weights in constraints.json; see `read_payloads`."""
        for place in (PAYLOAD_FILE, PAYLOADS_FOLDER):
            check_links(self.path / place, self.path)
        return read_payloads(self.path, self.constraints().weights)

    def expected(self, profile: Profile, request: bytes) -> ExpectedAnswer | None:
        """What `profile` knows of the answer to `request`, less what constraints.json excludes."""
        known = profile.answer_to(request)
        return known and known.without(self.constraints().unchecked(self.workflow))

    def payload_warnings(self) -> Iterator[str]:
        """What may not be meant about the example requests: there is none, or one is no JSON."""
        if not payload_files(self.path, {}):
            yield f"{self.path / PAYLOAD_FILE} is not there: functions are asked with {{}}"
        for payload in self.payloads():
            try:
                parse_json(payload.content, str(self.path / payload.name))
            except ChironError as error:
                yield f"{error}; it is sent as it is"


def parse_workflow(
    document: Any, name: str = "workflow", functions: FunctionNames | None = None
) -> Workflow:
    """The workflow in a document of any form; `name` where it names none."""
    found = known_form(document)
    with at_origins(found.origins):
        return _parser(found.document)(found.document, name, functions)


def _parser(document: dict[str, Any]) -> Callable[..., Workflow]:
    if "States" in document:
        return parse_states
    return parse_buckets if is_buckets(document) else parse_dag


def _function_names(path: Path) -> FunctionNames:
    """The names in functions.json, and those of stack.yaml for a proposal."""
    return FunctionNames(read_function_names(path), partial(_deployed, path / "stack.yaml"))


def read_function_names(path: Path) -> dict[str, str]:
    """What functions.json in the folder `path` has, nothing where there is none."""
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
    """The functions of a stack.yaml, none where it cannot be read: not the time to say why."""
    import yaml  # loaded on use: only a fault asks for it

    with suppress(OSError, ValueError, yaml.YAMLError, AttributeError, RecursionError):
        return tuple(map(str, yaml.safe_load(stack.read_text(encoding="utf-8"))["functions"]))
    return ()


def check_links(place: Path, folder: Path, *functions: str) -> None:
    """Refuse symbolic links at and below `place` that lead out of the workflow folder `folder`.

    What is there is read, copied into images and sent to functions, and links of a folder that
    somebody else made may lead to files of the user's. Where stack.yaml itself names a `place`
    elsewhere, as it does with ``../``, links may lead to where that is, too.

    Raises ``bad-link``, with the link, also where one leads nowhere, or to what it is in.
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
        except (OSError, RuntimeError):
            raise _bad_link(path, "leads nowhere, or through too many links", functions) from None
        links += path.is_symlink()
        if not any(real.is_relative_to(limit) for limit in limits):
            raise _bad_link(path, f"leads out of the workflow folder {folder}", functions)
        if real in above or links > _LINKS:
            raise _bad_link(path, "leads to where it is, or to more links than may be", functions)
        pending += [(inner, (*above, real)) for inner in inside]


def _lexical(path: Path) -> Path:
    """`path` without ``..``, as a reader of it understands it."""
    return Path(os.path.abspath(path))  # noqa: PTH100  (Path.absolute keeps them)


def _bad_link(path: Path, what: str, functions: tuple[str, ...]) -> ChironError:
    message = f"link {path} {what}: put the files themselves there"
    return ChironError("bad-link", message, functions=functions)


def default_name(path: Path) -> str:
    """The name that a folder, or a file, gives to a workflow without one.

    Of two folders with one name, each would replace the deployment of the other.
    """
    return as_workflow_name((path if path.is_dir() else path.with_suffix("")).resolve().name)
