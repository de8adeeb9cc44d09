"""Regular expressions in filters: RE2, which does not backtrack.

A text takes time in proportion to its length times the size of the expression, and other threads
run meanwhile. The price: there are no lookarounds and no backreferences.
"""

from __future__ import annotations

from functools import lru_cache

#: Most of a text's bytes times an expression's instructions. They take 0.3 s where RE2 is slowest.
_MOST = 500_000_000
#: Bytes for one compiled expression.
_MEMORY = 1 << 20
_KEPT = 256


class Refused(Exception):  # noqa: N818  # of a text and an expression, neither of which is wrong
    """A text is too long for an expression."""


class Regex:
    """A compiled expression. Raises ValueError, a line, where `pattern` is none.

    Args:
        flags: letters: ``i`` ignores the case, ``m`` has ^ and $ match at lines, ``s`` has . match
            any character. ``a`` is how RE2 works.
    """

    def __init__(self, pattern: str, flags: str = "") -> None:
        # Most wraps need none, and what the fork server has imported makes each fork longer.
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
    """The compiled `pattern`, None where it is none."""
    try:
        return Regex(pattern)
    except ValueError:
        return None
