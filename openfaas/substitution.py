"""Variables in stack.yaml: ``${VAR}`` expanded as faas-cli does, and text kept from being expanded.

faas-cli runs the whole file through github.com/drone/envsubst before it parses the YAML. Of that
language, variables and defaults are read here; its string functions (``${VAR^^}`` and so on) and
``:?`` and ``:+``, which mean something else than in a shell, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from workflow.errors import ChironError
from workflow.names import shown

#: A variable up to its default or its end.
_VARIABLE = re.compile(r"\$\{(\w+)(?P<then>\}|:-|:=|=)")
#: Text outside variables, in which ``$$``, ``\\`` and ``\/`` stand for their second character.
_TEXT = re.compile(r"(?:(?!\$\{)(?:\$\$|\\[\\/]|.))+", re.DOTALL)
_ESCAPE = re.compile(r"\$(\$)|\\([\\/])")
_DEFAULT_TEXT = re.compile(r"(?:(?!\$\{)[^}])+")


def escape(text: str) -> str:
    """`text` written so that faas-cli's expansion gives `text` again."""
    return text.replace("\\", "\\\\").replace("$", "$$")


def expand(
    text: str, variables: Mapping[str, str], what: str, *, refuse_unset: bool = False
) -> str:
    """`text`, called `what`, with its variables replaced, unset and empty ones by their default.

    Raises
    ------
    ChironError
        ``bad-substitution`` with the line, for anything but ``${VAR}``, ``${VAR:-default}``,
        ``${VAR:=default}`` and ``${VAR=default}``; with `refuse_unset` also for a variable that
        is not set and has no default.
    """
    try:
        return _Expansion(text, variables, what, refuse_unset).run()
    except RecursionError:
        message = f"{what} has defaults nested too deeply"
        raise ChironError("bad-substitution", message) from None


@dataclass
class _Expansion:
    """One pass over `text`; `position` is how far it has come."""

    text: str
    variables: Mapping[str, str]
    what: str
    refuse_unset: bool
    position: int = 0

    def run(self) -> str:
        parts: list[str] = []
        while self.position < len(self.text):
            if plain := _TEXT.match(self.text, self.position):
                self.position = plain.end()
                parts.append(_ESCAPE.sub(lambda m: m[1] or m[2], plain[0]))
            else:
                parts.append(self._variable())
        return "".join(parts)

    def _variable(self) -> str:
        opening = _VARIABLE.match(self.text, self.position)
        if not opening:
            raise self._bad()
        start, self.position = self.position, opening.end()
        bare = opening["then"] == "}"
        default = "" if bare else self._default(start)
        value = self.variables.get(opening[1])
        if bare and value is None and self.refuse_unset:
            raise ChironError(
                "bad-substitution",
                f"{self.what}, line {self._line(start)}: {opening[1][:60]} is not set for it: "
                "write the value, or a default: ${VAR:-default}",
            )
        return value or default

    def _default(self, start: int) -> str:
        parts: list[str] = []
        while not self.text.startswith("}", self.position):
            if plain := _DEFAULT_TEXT.match(self.text, self.position):
                self.position = plain.end()
                parts.append(plain[0])
            elif self.position < len(self.text):
                parts.append(self._variable())
            else:
                self.position = start
                raise self._bad()
        self.position += 1
        return "".join(parts)

    def _line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def _bad(self) -> ChironError:
        line = self._line(self.position)
        rest = self.text[self.position :].split("\n", 1)[0]
        return ChironError(
            "bad-substitution",
            f"{self.what}, line {line}: {shown(rest)} is not ${{VAR}} or ${{VAR:-default}}; "
            "write $${ for a literal ${",
        )
