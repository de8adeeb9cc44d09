"""Renders a wrap's handler.py: names from an allow-list, everything else as Python literals."""

from __future__ import annotations

import ast
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from generator.declaration import WrapDeclaration
from workflow.names import check_name

_TEMPLATE = "handler.py.jinja"


def render_handler(wrap: WrapDeclaration) -> str:
    """The source of the wrap's handler.py.

    Workflow, wrap and function names have to match OpenFaaS's pattern; all values are written
    as literals, and the result is compiled before it is returned, so nothing that a user typed
    can become code.

    Raises
    ------
    ChironError
        ``bad-name``.
    """
    check_name(wrap.workflow, "workflow", "workflow")
    check_name(wrap.name, "wrap", "wraps.name")
    remote = wrap.entry.functions.values() if wrap.entry else ()
    for function in (*wrap.functions, *remote):
        check_name(function, "function", "functions")
    environment = Environment(
        loader=PackageLoader("generator", ""),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  (the output is Python, made of literals)
        keep_trailing_newline=True,
    )
    environment.filters["literal"] = _literal
    source = environment.get_template(_TEMPLATE).render(wrap=wrap)
    compile(source, f"{wrap.name}/handler.py", "exec")
    return source


def _literal(value: Any) -> str:
    text = ascii(value)
    if ast.literal_eval(text) != value:
        raise ValueError(f"{text} is no literal")
    return text
