"""The code of a function that runs in wraps: its folder, and what it requires."""

from __future__ import annotations

import os
import shutil
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

#: What Python and other tools leave beside code.
SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*_cache", ".git")
#: What faas-cli leaves out of a handler folder, which may be that of stack.yaml itself.
OF_FAAS_CLI = frozenset({"build", "template"})
#: Path in a handler folder -> the file or folder that ``configuration.copy`` lays over it there.
Extra = tuple[tuple[str, Path], ...]


def read_requirements(handler: Handler) -> list[Requirement]:
    """The requirements in the function's requirements.txt, none where there is no such file.

    Raises ``bad-requirement`` with the line that is none; ``missing-file``, ``too-large``.
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


@dataclass(frozen=True)
class Handler:
    """The code of one function: `folder` has a handler.py that defines ``handle`` in `style`.

    One of the style ``command`` has in `folder` what its `command` may need, and runs there.
    ``extra`` is laid over the folder wherever the function runs. What a function changes of its
    process reaches others where it ``shares_process`` with them. It shares none with functions of
    another ``runtime``, which is empty for the wrap's own. Where it is ``cooperative``, others of
    its process run while it waits and never while it computes; where it is ``parallel``, always. It
    computes as fast as ever once it has been run for ``warm_up_s`` seconds. ``reference`` is the
    program by which the reference run calls it, if that does not import it: see
    `chiron.workflow.reference_handlers`.
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
    reference: tuple[str, ...] = ()

    @property
    def in_python(self) -> bool:
        """Whether it runs in the wrap's own Python, where others see what it changes."""
        return self.shares_process and not self.runtime

    def file(self, name: str) -> Path:
        """Where the file `name` of the function comes from: ``extra``, or its folder."""
        return dict(self.extra).get(name, self.folder / name)

    @property
    def places(self) -> tuple[Path, ...]:
        """The files and folders that its code is in."""
        return (self.folder, *(source for _, source in self.extra))


def extra_of(stack: StackFile, folder: Path) -> Extra:
    """What ``configuration.copy`` of the stack.yaml in `folder` adds to all handlers.

    Raises ``bad-copy`` where a path is not below `folder`, or nothing is there; ``bad-link``.
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
    """Copy the handler folder to `target`, which may be within, and lay `extra` over it."""

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
    """The handler folder of `function`, called `name`, in the workflow's `folder`.

    Raises ``no-handler``, which says the `content` that the folder is there with; ``bad-link``.
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


def there(check: Callable[[], bool]) -> bool:
    """What a path's ``is_file`` or ``is_dir`` says, False too of a name that no file can have."""
    try:
        return check()
    except OSError:
        return False


def fault(code: str, name: str, field: str, message: str) -> ChironError:
    """What is wrong with a field of the function `name`."""
    return ChironError(code, message, path=f"functions.{name}.{field}", functions=(name,))
