"""Parses Python code in one thread at a time.

Before 3.11.8, CPython counts the recursion of all threads that parse as one: ``ast.parse`` raises
SystemError (python/cpython#106905). Tracebacks are printed with parsed lines too, in any thread.
"""

from __future__ import annotations

import ast
import threading
from contextlib import suppress

_PARSING = threading.Lock()
#: How often to parse code again while other threads print tracebacks.
_TIMES = 10


def syntax_tree(code: bytes | str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of `code`. Raises the errors of ``ast.parse``."""
    with _PARSING:
        for _ in range(_TIMES):
            with suppress(SystemError):
                return ast.parse(code, file)
        return ast.parse(code, file)
