"""Variables in stack.yaml: expand ``${VAR}`` as faas-cli does, and escape text against it.

faas-cli runs the whole file through github.com/drone/envsubst before it parses the YAML. Of that
language, this module supports variables and defaults. It refuses string functions (``${VAR^^}`` and
so on), and ``:?`` and ``:+``, whose meaning differs from a shell's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from chiron.workflow.errors import ChironError
from chiron.workflow.names import shown

#: A variable, up to its default or its end.
_VARIABLE = re.compile(r"\$\{(\w+)(?P<then>\}|:-|:=|=)")
#: Text outside variables, in which ``$$``, ``\\`` and ``\/`` stand for their second character.
_TEXT = re.compile(r"(?:(?!\$\{)(?:\$\$|\\[\\/]|.))+", re.DOTALL)
_ESCAPE = re.compile(r"\$(\$)|\\([\\/])")
_DEFAULT_TEXT = re.compile(r"(?:(?!\$\{)[^}])+")
#: The maximum nesting of defaults.
_DEEPEST = 100


def escape(text: str) -> str:
    """Escape `text` so that faas-cli's expansion returns `text`."""
    return text.replace("\\", "\\\\").replace("$", "$$")


def expand(
    text: str, variables: Mapping[str, str], what: str, *, refuse_unset: bool = False
) -> str:
    """Replace the variables in `text`, called `what`; unset and empty variables use their defaults.

    Raises ``bad-substitution`` with the line, for anything but ``${VAR}``, ``${VAR:-default}``,
    ``${VAR:=default}`` and ``${VAR=default}``; with `refuse_unset` also for an unset variable
    without a default.
    """
    unclosed: list[tuple[int, str, list[str]]] = []  # variables with an open default
    parts: list[str] = []
    position = 0

    def value(name: str, default: str | None) -> str:
        if default is None and refuse_unset and name not in variables:
            mend = "is not set for it: write the value, or a default: ${VAR:-default}"
            raise _bad(text, position, what, f"{name[:60]} {mend}")
        return variables.get(name) or default or ""

    while position < len(text):
        if opening := _VARIABLE.match(text, position):
            if opening["then"] == "}":
                parts.append(value(opening[1], None))
            else:
                unclosed.append((position, opening[1], parts))
                parts = []
            if len(unclosed) > _DEEPEST:
                message = f"{what} has defaults nested too deeply"
                raise ChironError("bad-substitution", message)
            position = opening.end()
        elif unclosed and text[position] == "}":
            _, name, outer = unclosed.pop()
            outer.append(value(name, "".join(parts)))
            parts = outer
            position += 1
        elif plain := (_DEFAULT_TEXT if unclosed else _TEXT).match(text, position):
            parts.append(plain[0] if unclosed else _ESCAPE.sub(lambda m: m[1] or m[2], plain[0]))
            position = plain.end()
        else:
            raise _unknown(text, position, what)
    if unclosed:
        raise _unknown(text, unclosed[-1][0], what)
    return "".join(parts)


def unset(text: str, variables: Mapping[str, str]) -> list[str]:
    """Return the variables of `text` that are empty or not set, and have no default there."""
    names = (found[1] for found in _VARIABLE.finditer(text) if found["then"] == "}")
    return [name for name in dict.fromkeys(names) if not variables.get(name)]


def _unknown(text: str, position: int, what: str) -> ChironError:
    rest = text[position:].split("\n", 1)[0]
    mend = "is not ${VAR} or ${VAR:-default}; write $${ for a literal ${"
    return _bad(text, position, what, f"{shown(rest)} {mend}")


def _bad(text: str, position: int, what: str, reason: str) -> ChironError:
    line = text.count("\n", 0, position) + 1
    return ChironError("bad-substitution", f"{what}, line {line}: {reason}")
