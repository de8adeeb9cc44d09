"""The code of a function that runs in wraps: its folder and its requirements."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chiron.openfaas.handler_folder import LIMIT, parse
from chiron.openfaas.stack import StackFile, StackFunction
from chiron.workflow.documents import read_file
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import check_links
from chiron.workflow.names import shown

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: Folders that Python and other tools leave beside code.
SKIPPED = shutil.ignore_patterns(
    "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".git"
)
#: The folder of faas-cli's templates, beside stack.yaml.
TEMPLATE_FOLDER = "template"
#: Folders that faas-cli leaves out of a handler folder, which may be stack.yaml's own folder.
OF_FAAS_CLI = frozenset({"build", TEMPLATE_FOLDER})
#: The file of a Python project.
_PROJECT = "pyproject.toml"
#: Paths in a handler folder, and the files or folders that ``configuration.copy`` copies there.
Extra = tuple[tuple[str, Path], ...]


def read_requirements(handler: Handler) -> list[Requirement]:
    """Return the requirements in the function's requirements.txt; empty without the file.

    Raises ``bad-requirement`` with the faulty line; ``missing-file``, ``too-large``.
    """
    function, file = handler.function, handler.file("requirements.txt")
    if not file.exists():
        return []
    content = read_file(file, f"function {function}: {file}", LIMIT)
    try:
        return parse(content)
    except ValueError as error:
        message = f"function {function}: {file} {error}"
        raise ChironError("bad-requirement", message, functions=[function]) from None


def unread_dependencies(handler: Handler) -> str:
    """Return the file with a Python function's dependencies that its template ignores, or "".

    OpenFaaS's templates install requirements.txt alone.
    """
    if not handler.in_python or handler.file("requirements.txt").exists():
        return ""
    if handler.file("Pipfile").exists():
        return "Pipfile"
    try:
        project = tomllib.loads(handler.file(_PROJECT).read_text(encoding="utf-8"))
        own = project.get("tool", {}).get("poetry", {}).get("dependencies", {}).keys() - {"python"}
        return _PROJECT if own or project.get("project", {}).get("dependencies") else ""
    except (OSError, ValueError, AttributeError):
        return ""


@dataclass(frozen=True)
class Handler:
    """The code of one function: `folder` has a handler.py that defines ``handle`` in `style`.

    In the style ``command``, `folder` has the files of `command`, which runs there. ``extra`` is
    copied over the folder wherever the function runs. ``shares_process``: its changes to the
    process affect other functions of the same ``runtime``. An empty ``runtime`` is the wrap's own.
    ``cooperative``: other functions of its process run while it waits, never while it computes.
    ``parallel``: they always run. After ``warm_up_s`` seconds it runs at full speed.
    """

    function: str
    folder: Path
    style: str
    command: tuple[str, ...] = ()
    extra: Extra = ()
    shares_process: bool = True
    runtime: str = ""
    cooperative: bool = False
    parallel: bool = False
    warm_up_s: float = 0.0

    @property
    def in_python(self) -> bool:
        """Whether it runs in the wrap's own Python, where its changes affect other functions."""
        return self.shares_process and not self.runtime

    def file(self, name: str) -> Path:
        """Return the source of the function's file `name`: in ``extra``, or in its folder."""
        return dict(self.extra).get(name, self.folder / name)

    @property
    def places(self) -> tuple[Path, ...]:
        """The files and folders of its code."""
        return (self.folder, *(source for _, source in self.extra))


def extra_of(stack: StackFile, folder: Path) -> Extra:
    """Return the files that ``configuration.copy`` of the stack.yaml in `folder` adds to handlers.

    Raises ``bad-copy`` if a path is not below `folder`, or does not exist; ``bad-link``.
    """
    copied = stack.configuration.copy_ if stack.configuration else ()
    found = []
    for number, given in enumerate(copied):
        path = os.path.normpath(given)
        parts = Path(path).parts
        if not parts or parts[0] == os.pardir or Path(path).is_absolute():
            why = "is not below the folder of stack.yaml: name a file or a folder in it"
        elif not there((folder / path).exists):
            why = f"is not there: create {folder / path}, or remove the line"
        else:
            check_links(folder / path, folder)
            found.append((path, folder / path))
            continue
        message = f"configuration.copy: {shown(given)} {why}"
        raise ChironError("bad-copy", message, path=f"configuration.copy[{number}]")
    return tuple(found)


def lay_out(folder: Path, extra: Extra, target: Path) -> None:
    """Copy the handler folder to `target`, which may be within, and copy `extra` over it."""

    def skipped(place: str, names: list[str]) -> set[str]:
        found = set(SKIPPED(place, names))
        if Path(place) == folder:
            found |= OF_FAAS_CLI
        return found | {each for each in names if Path(place, each).absolute() in around}

    around = {each.absolute() for each in (target, *target.absolute().parents)}
    shutil.copytree(folder, target, ignore=skipped)
    for path, source in extra:
        place = target / path
        if source.is_dir():
            shutil.copytree(source, place, ignore=SKIPPED, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def handler_folder(name: str, function: StackFunction, folder: Path, content: str) -> Path:
    """Return the handler folder of `function`, called `name`, in the workflow's `folder`.

    Raises ``no-handler``, whose message describes the expected `content`; ``bad-link``.
    """
    if not function.handler:
        message = f"function {name} has no handler: name the folder {content}"
        raise fault("no-handler", name, "handler", message)
    place = folder / function.handler
    if not there(place.is_dir):
        message = f"function {name}: folder missing at {place}: create it or mend handler"
        raise fault("no-handler", name, "handler", message)
    check_links(place, folder, name)
    return place


def own_template(lang: str, folder: Path) -> Path | None:
    """Return the user's template `lang` beside the stack.yaml in `folder`; None without one.

    Raises ``bad-link``.
    """
    own = folder / TEMPLATE_FOLDER / lang
    if own.name != lang or not there(own.is_dir):  # `lang` is no path
        return None
    check_links(own, folder)
    return own


def there(check: Callable[[], bool]) -> bool:
    """Return the result of a path's ``is_file`` or ``is_dir``; False for an impossible name."""
    try:
        return check()
    except OSError:
        return False


def fault(code: str, name: str, field: str, message: str) -> ChironError:
    """Return the error of a field of the function `name`."""
    return ChironError(code, message, path=f"functions.{name}.{field}", functions=(name,))
