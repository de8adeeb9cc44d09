"""What runs a function of stack.yaml, found and checked: handler or command, requirements."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chiron.openfaas.commands import COMMAND, command_of
from chiron.openfaas.handler_folder import LIMIT, STYLES, Style, bindings, parse
from chiron.openfaas.stack import StackFile
from chiron.workflow.documents import read_file
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import check_links
from chiron.workflow.names import shown
from chiron.workflow.reference import HandlerStyle

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_PARAMETERS: dict[Style, tuple[str, ...]] = {
    "flask": ("req",),
    "http": ("event", "context"),
    "http-debian": ("event", "context"),
}


#: What Python and other tools leave beside code.
SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*_cache", ".git")
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
    ``extra`` is laid over the folder wherever the function runs.
    """

    function: str
    folder: Path
    style: HandlerStyle
    command: tuple[str, ...] = ()
    extra: Extra = ()

    def file(self, name: str) -> Path:
        """Where the file `name` of the function comes from: ``extra``, or its folder."""
        return dict(self.extra).get(name, self.folder / name)


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
    """Copy the handler folder `folder` to `target`, and lay `extra` over it, as faas-cli does."""
    shutil.copytree(folder, target, ignore=SKIPPED)
    for path, source in extra:
        place = target / path
        if source.is_dir():
            shutil.copytree(source, place, ignore=SKIPPED, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def handler_style(lang: str) -> HandlerStyle:
    """How the template `lang` calls handlers; ``bad-lang`` lists those that tasks may have."""
    if lang == COMMAND:
        return "command"
    if lang in STYLES:
        return STYLES[lang]
    raise ChironError(
        "bad-lang",
        f"lang {shown(lang)} cannot run a task: use one of {', '.join(STYLES)}, or {COMMAND} for a "
        "program that fprocess names",
    )


def find_handler(stack: StackFile, name: str, folder: Path) -> Handler:
    """The handler of the function `name` of the stack.yaml in `folder`, checked but not run.

    Raises ``unknown-function``, ``bad-lang``, ``no-handler`` (folder or handler.py missing),
    ``bad-link``, ``bad-copy``, ``bad-handler`` (handler.py without a usable ``handle``) or what
    `chiron.openfaas.commands.command_of` raises, with the function's name.
    """
    function = stack.function(name)
    try:
        style = handler_style(function.lang)
    except ChironError as error:
        message = f"function {name}: {error.message}"
        raise _fault("bad-lang", name, "lang", message) from None
    command = command_of(name, function) if style == "command" else ()
    extra = extra_of(stack, folder)
    if not function.handler:
        content = "that its command runs in" if command else "with its handler.py"
        message = f"function {name} has no handler: name the folder {content}"
        raise _fault("no-handler", name, "handler", message)
    if style == "command":
        place = _folder(name, folder / function.handler, folder)
        return Handler(name, place, style, command, extra)
    code = folder / function.handler / "handler.py"
    if not there(code.is_file):
        what = "handler.py" if there(code.parent.is_dir) else "folder"
        message = f"function {name}: {what} missing at {code.parent}: create it or mend handler"
        raise _fault("no-handler", name, "handler", message)
    check_links(code.parent, folder, name)
    reason = _unusable(code, style)
    if reason:
        raise _fault("bad-handler", name, "handler", f"function {name}: {code} {reason}")
    return Handler(name, code.parent, style, extra=extra)


def _folder(name: str, place: Path, workflow: Path) -> Path:
    if not there(place.is_dir):
        message = f"function {name}: folder missing at {place}: create it or mend handler"
        raise _fault("no-handler", name, "handler", message)
    check_links(place, workflow, name)
    return place


def there(check: Callable[[], bool]) -> bool:
    """What a path's ``is_file`` or ``is_dir`` says, False too of a name that no file can have."""
    try:
        return check()
    except OSError:
        return False


def _unusable(code: Path, style: Style) -> str | None:
    """Why ``handle`` in the file `code` cannot be called in `style`, and the mend."""
    wanted = f"def handle({', '.join(_PARAMETERS[style])})"
    try:
        tree = ast.parse(code.read_bytes(), filename=str(code))
        definitions = [found for found in bindings(tree) if found[0] == "handle"]
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"is not Python{line}: {getattr(error, 'msg', error)}"
    except (RecursionError, MemoryError):
        return "is nested too deeply"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not definitions:
        return f"has no handle: define {wanted}"
    definition = definitions[-1][1]
    if isinstance(definition, ast.AsyncFunctionDef):
        return f"has an async handle, which the template does not await: define {wanted}"
    count = len(_PARAMETERS[style])
    if isinstance(definition, ast.FunctionDef) and not _takes(definition.args, count):
        return f"has a handle with other parameters than its lang calls: define {wanted}"
    return None


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Whether a function with these parameters can be called with `count` positional values."""
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    free_keywords = all(default is not None for default in arguments.kw_defaults)
    return required <= count and (positional >= count or bool(arguments.vararg)) and free_keywords


def _fault(code: str, name: str, field: str, message: str) -> ChironError:
    return ChironError(code, message, path=f"functions.{name}.{field}", functions=(name,))
