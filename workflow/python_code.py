"""Parses Python code in one thread at a time.

Before 3.11.8, CPython counts the recursion of all threads that parse as one: ``ast.parse`` raises
SystemError (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading

_PARSING = threading.Lock()


def syntax_tree(code: bytes | str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of `code`. Raises the errors of ``ast.parse``."""
    with _PARSING:
        return ast.parse(code, file)
