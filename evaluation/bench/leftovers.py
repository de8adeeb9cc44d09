"""Functions of a run that was killed: noted before they are deployed, removed by the next run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from generator.deploy import remove_all
from openfaas.client import Gateway
from workflow.documents import read_json, write_atomically


@dataclass(frozen=True)
class Leftovers:
    """The file that names what is deployed at the moment; there is none where nothing is."""

    file: Path

    @contextmanager
    def removed_from(self, gateway: Gateway) -> Iterator[None]:
        """Remove what an earlier run has left; forget what was noted when the block has ended."""
        remove_all(gateway, self._noted())
        self.file.unlink(missing_ok=True)
        yield
        self.file.unlink(missing_ok=True)

    def note(self, names: Iterable[str]) -> None:
        """Remember functions that are about to be deployed."""
        write_atomically(self.file, json.dumps([*self._noted(), *names]))

    def _noted(self) -> list[str]:
        return list(map(str, read_json(self.file, "list"))) if self.file.exists() else []
