"""Render a wrap's handler.py: names from an allow-list, everything else as Python literals."""

from __future__ import annotations

import ast
from dataclasses import fields
from itertools import chain
from typing import Any

from chiron.workflow.names import check_name
from chiron.wrap.core.declaration import EntryDeclaration, WrapDeclaration

_HANDLER = '''\
"""Wrap {name} of workflow {workflow}: which function runs where.

Generated from plan.json by chiron; the logic is in the template's package ``wrap``.
"""

from wrap.core.wrap_spec import Entry, Wrap

WRAP = {wrap}
'''
#: The names of these classes in the runtime.
_CLASSES = {WrapDeclaration: "Wrap", EntryDeclaration: "Entry"}


def render_handler(wrap: WrapDeclaration) -> str:
    """Return the source of the wrap's handler.py.

    Workflow, wrap and function names must match OpenFaaS's pattern. All values are written as
    literals, and the result is compiled before it is returned. So no user input can become code.

    Raises ``bad-name``.
    """
    check_name(wrap.workflow, "workflow", "workflow")
    check_name(wrap.name, "wrap", "wraps.name")
    remotes = (each.values() for each in wrap.remotes.values())
    for function in (*wrap.functions, *chain.from_iterable(remotes)):
        check_name(function, "function", "functions")
    source = _HANDLER.format(name=wrap.name, workflow=wrap.workflow, wrap=_source(wrap, ""))
    compile(source, f"{wrap.name}/handler.py", "exec")
    return source


def _source(value: Any, indent: str) -> str:
    """Return `value` as Python source: fields and entries one per line, all else a literal."""
    inner = indent + "    "
    if type(value) in _CLASSES:
        lines = [f"{f.name}={_source(getattr(value, f.name), inner)}" for f in fields(value)]
        begin, end = f"{_CLASSES[type(value)]}(", ")"
    elif isinstance(value, dict) and value:
        lines = [f"{_literal(key)}: {_literal(each)}" for key, each in value.items()]
        begin, end = "{", "}"
    else:
        return _literal(value)
    return "\n".join([begin, *(f"{inner}{line}," for line in lines), indent + end])


def _literal(value: Any) -> str:
    text = ascii(value)
    if ast.literal_eval(text) != value:
        raise ValueError(f"{text} is no literal")
    return text
