"""Regular expressions in filters: RE2, which does not backtrack.

Matching takes time proportional to the text's length times the expression's size, and releases the
GIL. Lookarounds and backreferences are not supported.
"""

from __future__ import annotations

from functools import lru_cache

#: The limit of bytes times instructions; it takes 0.3 s in RE2's slowest mode.
_MOST = 500_000_000
#: Memory of one compiled expression in bytes.
_MEMORY = 1 << 20
_KEPT = 256


class Refused(Exception):  # noqa: N818  # neither the text nor the expression is wrong
    """Raised if a text is too long for an expression."""


class Regex:
    """A compiled expression. Raises ValueError, a line, for an invalid `pattern`.

    Args:
        flags: letters: ``i`` ignores case, ``m`` lets ^ and $ match at lines, ``s`` lets . match
            any character; ``a`` is RE2's default.
    """

    def __init__(self, pattern: str, flags: str = "") -> None:
        # Most wraps need no regex, and each module in the fork server slows down every fork.
        import re2  # type: ignore[import-untyped]

        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = _MEMORY
        kept = "".join(sorted(set(flags) - {"a"}))
        try:
            self._compiled = re2.compile(f"(?{kept}){pattern}" if kept else pattern, options)
        except (re2.error, UnicodeEncodeError) as error:
            said = error.args[0] if isinstance(error, re2.error) else error
            reason = said.decode(errors="replace") if isinstance(said, bytes) else said
            limits = "RE2, which has no lookarounds and no backreferences"
            raise ValueError(f"{limits}, refuses {pattern!a}: {reason}") from None

    def fullmatch(self, text: str) -> bool:
        """Whether all of `text` matches. Raises Refused."""
        return self._compiled.fullmatch(self._bounded(text)) is not None

    def search(self, text: str) -> bool:
        """Whether a part of `text` matches. Raises Refused."""
        return self._compiled.search(self._bounded(text)) is not None

    def _bounded(self, text: str) -> bytes:
        encoded = text.encode(errors="surrogatepass")
        if len(encoded) * self._compiled.programsize > _MOST:
            raise Refused(f"a text of {len(encoded)} bytes is too long for its regular expression")
        return encoded


@lru_cache(_KEPT)
def regex_or_none(pattern: str) -> Regex | None:
    """Compile `pattern`; None if it is invalid."""
    try:
        return Regex(pattern)
    except ValueError:
        return None
