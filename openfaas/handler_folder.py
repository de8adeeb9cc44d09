"""The content of a handler folder: its handler, the names that it binds, and requirements.txt.

Requirements are packages by name. pip also accepts options, paths and environment variables in such
files, which expose files and secrets of the building user; they are refused. The gateway imports
this module, so it imports no other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Style = Literal["flask", "http", "http-debian"]

#: The path of the handler folder in OpenFaaS's templates.
CONTAINER_FOLDER = "/home/app/function"
#: The calling convention of each supported template.
STYLES: dict[str, Style] = {
    "python3-flask": "flask",
    "python3-flask-debian": "flask",
    "python3-http": "http",
    "python3-http-debian": "http-debian",
}
#: The templates of OpenFaaS's classic watchdog.
_CLASSIC = ("python", "python27", "python3", "python3-debian")
#: The maximum size of requirements.txt, in bytes.
LIMIT = 1024 * 1024
#: The allowed URL schemes of packages that are not from pip's index.
_SCHEMES = ("https://", "git+https://", "git+ssh://")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_SHOWN = 60


def handler_file(folder: Path) -> Path:
    """Return the file that `from function import handler` runs: a package comes before a module."""
    package = folder / "handler" / "__init__.py"
    return package if package.is_file() else folder / "handler.py"


def meant(lang: str, known: Collection[str]) -> str:
    """Return a phrase with the `known` template that `lang` resembles; empty if there is none.

    The handlers of the classic templates are called like those of python3-flask.
    """
    if lang in _CLASSIC:
        return f" (python3-flask calls the same handle as {lang})"
    return similar(lang, known)


def similar(name: str, known: Collection[str]) -> str:
    """Return a phrase with the `known` name that `name` resembles; empty if there is none."""
    alike = get_close_matches(name, known, 1, 0.8)
    return f" (did you mean {alike[0]}?)" if alike else ""


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a module binds, also within if and try, with the binding nodes.

    A star import, which may bind any name, binds ``*``.
    """
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, child
            case ast.ClassDef(name=name):
                yield name, child
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    yield alias.asname or alias.name.split(".")[0], child
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, child
            case ast.AnnAssign(value=None):
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                continue
            case _:
                yield from bindings(child)


def parse(content: bytes) -> list[Requirement]:
    """Return the requirements in `content`, with normalised names.

    Raises ValueError with one line: the first faulty line, and what to write instead.
    """
    if len(content) > LIMIT:
        raise ValueError(f"has more than {LIMIT} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    return [_parsed(line, number) for number, line in _lines(text)]


def parse_line(line: str) -> Requirement:
    """Return one requirement; ValueError states its fault, and what to write instead."""
    # Loaded only if there is a requirement: most functions have none.
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(line)
        if requirement.marker:
            requirement.marker.evaluate()
    except InvalidRequirement:
        raise ValueError(_why(line)) from None
    except ValueError as error:  # a marker that compares incomparable values
        raise ValueError(f"has a condition that cannot be evaluated: {error}") from None
    if requirement.url and not requirement.url.startswith(_SCHEMES):
        raise ValueError(f"comes from a place that is not taken: use {', '.join(_SCHEMES)}")
    if "${" in line or _option(str(requirement)):
        raise ValueError("has a variable or an option of pip in it: write it without")
    return requirement


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines as pip joins them, without comments, each with its first line number."""
    joined, first = "", 1
    for number, line in enumerate(text.splitlines(), start=1):
        first = first if joined else number
        continues = line.endswith("\\") and not _COMMENT.match(line)
        joined += line[:-1] + " " if continues else line
        if not continues:
            if stripped := _COMMENT.sub("", joined).strip():
                yield first, stripped
            joined = ""
    if stripped := _COMMENT.sub("", joined).strip():
        yield first, stripped


def _parsed(line: str, number: int) -> Requirement:
    try:
        requirement = parse_line(line)
    except ValueError as error:
        raise ValueError(f"line {number}: {line[:_SHOWN]!a} {error}") from None
    from packaging.utils import canonicalize_name

    requirement.name = canonicalize_name(requirement.name)
    return requirement


def _why(line: str) -> str:
    if option := _option(line):
        return (
            f"has an option of pip ({option[:_SHOWN]!a}): list the packages themselves, "
            "without hashes, and name another index in PIP_INDEX_URL or PIP_EXTRA_INDEX_URL"
        )
    if line.startswith(_SCHEMES):
        return f"is no plain requirement: write the package before it, NAME @ {line[:_SHOWN]}"
    return (
        "is no plain requirement (name==1.0): name a package, "
        "and put code of your own into the handler folder"
    )


def _option(line: str) -> str | None:
    """Return the first word of `line` that pip would treat as an option."""
    return next((word for word in line.split() if word.startswith("-")), None)
