"""Looks at a handler before it is built: does handler.py define the name its template calls?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gateway.errors import GatewayError


def check(function: str, folder: Path, name: str) -> None:
    """Raise GatewayError unless ``folder/handler.py`` defines `name` at its top level."""
    path = folder / "handler.py"
    if not path.is_file():
        raise GatewayError(
            "handler-missing",
            f"function {function}: no handler.py in {folder}: create it with a {name}",
        )
    try:
        module = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", str(error))
        raise GatewayError(
            "handler-syntax", f"function {function}: {path}:{line} is not valid Python: {reason}"
        ) from error
    defined = set(_names(module.body))
    if not defined & {name, "*"}:
        raise GatewayError(
            "handler-without-entry",
            f"function {function}: {path} defines no {name} at its top level: add one",
        )


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """Every name that the statements bind; ``*`` for a star import, which may bind any."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.Assign(targets=targets):
                yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.If() | ast.Try() | ast.With():
                yield from _names(_nested(statement))


def _nested(statement: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    nested = list(statement.body)
    if not isinstance(statement, ast.With):
        nested += statement.orelse
    if isinstance(statement, ast.Try):
        nested += statement.finalbody
        for handler in statement.handlers:
            nested += handler.body
    return nested
