"""The one error type that users meet: a code, a sentence, where it is, and whom it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

#: Names in a message are cut before; what is longer came from outside as a whole.
_LONGEST = 2000


class ChironError(Exception):
    """Something that a user can mend, said in one line that names the thing and the mend.

    Parameters
    ----------
    code
        A stable word for programs, such as ``cycle``.
    message
        One line for people: what is wrong and what to do about it.
    path
        Where in the artefact it stands, such as ``States.B.Next``.
    functions
        The functions (or tasks) concerned.
    status
        The HTTP status with which a service answers; the command line exits with 2 below 500
        and with 1 from 500 on.
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
        self.path = None if path is None else _one_line(path)
        super().__init__(self.message)
        self.functions = tuple(functions)
        self.status = status

    def as_dict(self) -> dict[str, object]:
        """The error as the services send it and ``--json`` prints it."""
        return {
            "code": self.code,
            "message": self.message,
            "path": self.path,
            "functions": list(self.functions),
        }

    def __str__(self) -> str:
        return f"{self.message} (at {self.path})" if self.path else self.message


class Faults:
    """What is wrong with one file: all of it is said at once."""

    def __init__(self) -> None:
        self._found: list[ChironError] = []

    def __len__(self) -> int:
        return len(self._found)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Go on after a ChironError of the block."""
        try:
            yield
        except ChironError as error:
            self._found.append(error)

    def raise_all(self) -> None:
        """Raise the only fault, or one error that says each with its place."""
        if not self._found:
            return
        first = self._found[0]
        if len(self._found) == 1:
            raise first
        raise ChironError(
            first.code,
            f"{len(self._found)} faults: {'; '.join(map(str, self._found))}",
            path=first.path,
            functions=dict.fromkeys(name for error in self._found for name in error.functions),
            status=first.status,
        )


def _one_line(text: str) -> str:
    """`text` as any terminal can show it: names come from files and may hold anything."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:_LONGEST])
    return shown if len(text) <= _LONGEST else f"{shown}..."
