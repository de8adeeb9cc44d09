"""wishes.json: what a user wants kept apart or together, whatever it costs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workflow.documents import Document, read_document
from workflow.errors import ChironError

WISHES_FILE = "wishes.json"


class Wishes(Document):
    """Functions in a process or a wrap of their own, and functions that share a wrap.

    ``{"format": 1, "isolate": {"parse": "process", "audit": "wrap"}, "together": [["a", "b"]]}``:
    `parse` shares its process with no other function, `audit` not even its sandbox; `a` and `b`
    are in one sandbox. Several tasks of one function may always share.
    """

    format: Literal[1]
    isolate: dict[str, Literal["process", "wrap"]] = Field(default_factory=dict)
    together: tuple[Annotated[tuple[str, ...], Field(min_length=2)], ...] = ()

    def check_functions(self, functions: Collection[str]) -> None:
        """Raise ``unknown-function`` for a wish about none of `functions`."""
        wished = {*self.isolate, *(name for group in self.together for name in group)}
        unknown = sorted(wished.difference(functions))
        if unknown:
            raise ChironError(
                "unknown-function",
                f"{WISHES_FILE} has wishes for {', '.join(unknown[:8])}, which the workflow does "
                "not use: correct the name or take the wish out",
                functions=unknown,
            )


NO_WISHES = Wishes(format=1)


def read_wishes(folder: Path) -> Wishes:
    """The wishes in the workflow folder `folder`; none where it has no wishes.json."""
    file = folder / WISHES_FILE
    return read_document(Wishes, file, "wishes") if file.exists() else NO_WISHES
