"""What a handler folder holds: the names that handler.py binds, what requirements.txt asks for.

Requirements are packages by name. pip reads options, paths and variables of the environment from
such files as well, which reach files and secrets of the user that builds; those are refused. The
gateway imports this module too, and no other of the project: this one imports none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Style = Literal["flask", "http", "http-debian"]

#: Where OpenFaaS's templates put the folder of a handler.
CONTAINER_FOLDER = "/home/app/function"
#: How handlers of each supported template are called.
STYLES: dict[str, Style] = {
    "python3-flask": "flask",
    "python3-flask-debian": "flask",
    "python3-http": "http",
    "python3-http-debian": "http-debian",
}
#: The templates of OpenFaaS's classic watchdog.
_CLASSIC = ("python", "python27", "python3", "python3-debian")
#: Largest requirements.txt, in bytes.
LIMIT = 1024 * 1024
#: Where a package may come from, if not from pip's index.
_SCHEMES = ("https://", "git+https://", "git+ssh://")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_SHOWN = 60


def meant(lang: str, known: Collection[str]) -> str:
    """Which of the `known` templates `lang` may be, as the end of a phrase; empty if none is.

    The handlers of the classic template are called as those of python3-flask.
    """
    if lang in _CLASSIC:
        return f" (python3-flask calls the same handle as {lang})"
    alike = get_close_matches(lang, known, 1, 0.8)
    return f" (did you mean {alike[0]}?)" if alike else ""


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a module binds, in its ifs and trys too, with what binds them.

    A star import, which may bind any, binds ``*``.
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
    """The requirements in `content`, their names normalised.

    Raises ValueError, one line that names the first fault by its line, and what to write instead.
    """
    if len(content) > LIMIT:
        raise ValueError(f"has more than {LIMIT} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    return [_parsed(line, number) for number, line in _lines(text)]


def parse_line(line: str) -> Requirement:
    """One requirement; ValueError says what is wrong with it, and what to write instead."""
    # Loaded only where there is a requirement: most functions have none.
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(line)
        if requirement.marker:
            requirement.marker.evaluate()
    except InvalidRequirement:
        raise ValueError(_why(line)) from None
    except ValueError as error:  # a marker that compares what cannot be compared
        raise ValueError(f"has a condition that cannot be evaluated: {error}") from None
    if requirement.url and not requirement.url.startswith(_SCHEMES):
        raise ValueError(f"comes from a place that is not taken: use {', '.join(_SCHEMES)}")
    if "${" in line or _option(str(requirement)):
        raise ValueError("has a variable or an option of pip in it: write it without")
    return requirement


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines as pip joins them, without comments, each with the number of its first one."""
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
    return (
        "is no plain requirement (name==1.0): name a package, "
        "and put code of your own into the handler folder"
    )


def _option(line: str) -> str | None:
    """The first word of `line` that pip would take for an option."""
    return next((word for word in line.split() if word.startswith("-")), None)
