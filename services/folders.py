"""Workflow folders that clients name: below the server's root, or uploaded; never elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from chiron.generator.generate import Sources
from chiron.openfaas.stack import StackFile, read_stack, write_stack
from chiron.services.archives import unpack
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import workflow_folders
from chiron.workflow.names import as_workflow_name, shown


def named_folder(directory: str, root: Path, variables: Mapping[str, str]) -> str:
    """Return the path of the folder `directory` below `root`, checked, with links resolved.

    Raises ``outside-root`` (403) if the folder, or code that its stack.yaml names, is not below
    `root`; or the errors of opening the folder.
    """
    inside = root.resolve()
    path = _below(inside, inside / directory)
    if path is None:
        raise _outside(f"directory {shown(directory)} is outside", "directory")
    if not path.is_dir():
        message = f"workflow folder {shown(directory)} is not there"
        raise ChironError("missing-file", message, path="directory")
    folder = WorkflowFolder.open(path)
    _check_contained(read_stack(folder.stack_file, variables), path, inside)
    Sources.read(folder, variables)
    folder.payloads()
    return str(path)


def example_folder(root: Path) -> str:
    """Return the name of a workflow folder near below `root`, for examples; ``DIR`` if none."""
    levels = (workflow_folders(root, depth) for depth in ("*/", "*/*/"))
    found = next(chain.from_iterable(levels), None)
    return str(found.relative_to(root)) if found else "DIR"


def uploaded_folder(archive: Path, target: Path) -> str:
    """Unpack `archive` below `target`; return the path of its folder, checked.

    The folder must not use the server's files or variables. So its stack.yaml is rewritten with the
    defaults of its variables, and none is left to expand later.

    Raises ``outside-root`` (403), ``bad-substitution``, or the errors of opening the folder.
    """
    with archive.open("rb") as packed:
        path = unpack(packed, target)
    archive.unlink()
    folder = WorkflowFolder.open(path)
    stack = read_stack(folder.stack_file, {}, refuse_unset=True)
    _check_contained(stack, path, path.resolve())
    write_stack(folder.stack_file, stack)
    Sources.read(folder, {})
    folder.payloads()
    return str(path)


def folder_name(file_name: str | None) -> str:
    """Return the name for the folder of an uploaded archive: the archive's name."""
    return as_workflow_name((file_name or "").split(".")[0])


def _check_contained(stack: StackFile, folder: Path, limit: Path) -> None:
    for name, function in stack.functions.items():
        for field, value in (
            ("handler", function.handler),
            *(("environment_file", file) for file in function.environment_file),
        ):
            if _below(limit, folder / value) is None:
                path = f"functions.{name}.{field}"
                raise _outside(f"function {name}: {shown(value)} is outside", path, name)


def _below(limit: Path, path: Path) -> Path | None:
    """Return `path` with links resolved, or None if it is invalid or not below `limit`."""
    try:
        resolved = path.resolve()
        resolved.exists()  # raises if the file system rejects the path
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, a loop of links
        return None
    return resolved if resolved.is_relative_to(limit) else None


def _outside(what: str, path: str, *functions: str) -> ChironError:
    message = f"{what}: name what is below the folder that the server has for its --root"
    return ChironError("outside-root", message, path=path, functions=functions, status=403)
