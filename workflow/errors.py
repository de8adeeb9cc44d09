"""The error type shown to users: a code, a sentence, a path, and the functions concerned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

#: The maximum length of a message: names in it are cut earlier; longer texts are foreign.
_LONGEST = 2000


class ChironError(Exception):
    """An error that a user can fix, in one line that names the thing and the fix.

    Args:
        code: a stable word for programs, such as ``cycle``.
        message: one line for people: the fault and the fix.
        path: the location in the artefact, such as ``States.B.Next``.
        functions: the functions (or tasks) concerned.
        status: the HTTP status of a service's answer. The command line exits with 2 below 500 and
            with 1 from 500 on, unless its caller can fix the fault anyway.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        path: str | None = None,
        functions: Iterable[str] = (),
        status: int = 400,
    ) -> None:
        self.code = code
        self.message = _one_line(message)
        self.path = _one_line(path) if path else None
        super().__init__(self.message)
        self.functions = tuple(functions)
        self.status = status
        #: The joined faults, if it joins several.
        self.parts: tuple[ChironError, ...] = ()

    def relocated(self, change: Callable[[str | None], str | None]) -> ChironError:
        """Return the same error, or its faults, with paths mapped by `change`."""
        faults = [each.changed(change(each.path)) for each in self.parts or (self,)]
        return faults[0] if len(faults) == 1 else _joined(faults)

    def add(self, more: str) -> None:
        """Append to the message in the same line."""
        self.message = _one_line(f"{self.message}; {more}")
        self.args = (self.message,)

    def as_dict(self) -> dict[str, object]:
        """Return the error in the form that services send and ``--json`` prints."""
        return {
            "code": self.code,
            "message": self.message,
            "path": self.path,
            "functions": list(self.functions),
        }

    def within(self, where: str) -> ChironError:
        """Return the error of one of several things, with `where` before its message."""
        return self.changed(self.path, f"{where}: {self.message}")

    def changed(self, path: str | None, message: str | None = None) -> ChironError:
        """Return the error at `path`, with another message if there is one."""
        error = ChironError(
            self.code,
            message or self.message,
            path=path,
            functions=self.functions,
            status=self.status,
        )
        error.parts = self.parts
        return error

    def __str__(self) -> str:
        if not self.path or f"(at {self.path})" in self.message:
            return self.message
        return f"{self.message} (at {self.path})"


class WorkflowFailedError(ChironError):
    """A workflow ended with an error that nothing caught.

    Args:
        error, cause: the ``Error`` and ``Cause`` of States Language.
    """

    def __init__(
        self,
        error: str,
        cause: str,
        code: str = "workflow-failed",
        message: str | None = None,
        functions: Iterable[str] = (),
    ) -> None:
        shown = ": ".join(filter(None, (error, cause))) if message is None else message
        super().__init__(code, shown, functions=functions, status=500)
        self.error = error
        self.cause = cause

    def as_dict(self) -> dict[str, object]:
        """The error with its ``error`` and ``cause``."""
        return {**super().as_dict(), "error": self.error, "cause": self.cause}


class Faults:
    """Collects faults to raise them together at the end; `tell` is called with each at once."""

    def __init__(self, tell: Callable[[ChironError], None] | None = None) -> None:
        self._found: list[ChironError] = []
        self._tell = tell

    def __len__(self) -> int:
        return len(self._found)

    @contextmanager
    def noting(self, where: str = "") -> Iterator[None]:
        """Record a ChironError of the block and continue; `where` comes before its message."""
        try:
            yield
        except ChironError as error:
            found = error.within(where) if where else error
            self._found.append(found)
            if self._tell:
                self._tell(found)

    def raise_all(self) -> None:
        """Raise the only fault, or one error with all faults and their places."""
        if self._found:
            raise self._found[0] if len(self._found) == 1 else _joined(self._found)


def _joined(faults: Sequence[ChironError]) -> ChironError:
    first = faults[0]
    error = ChironError(
        first.code,
        f"{len(faults)} faults: {'; '.join(map(str, faults))}",
        path=first.path,
        functions=dict.fromkeys(name for error in faults for name in error.functions),
        status=first.status,
    )
    error.parts = tuple(part for each in faults for part in each.parts or (each,))
    return error


def _one_line(text: str) -> str:
    """Return `text` printable on any terminal: names come from files and may contain anything."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:_LONGEST])
    return shown if len(text) <= _LONGEST else f"{shown}..."
