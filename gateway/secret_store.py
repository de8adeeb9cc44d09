"""Secrets: stored in memory, and written to files for functions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chiron.gateway.function_user import FunctionUser
from chiron.workflow.errors import ChironError


class SecretStore:
    """The secrets of the namespace, and the secrets folders of functions.

    Args:
        shared: whether any user may read the files, as a container's function has its own user. The
            folders must then be in a folder that only this user may enter.
        user: the owner of the files; this process's own user if None.
    """

    def __init__(self, *, shared: bool = False, user: FunctionUser | None = None) -> None:
        self._folder_mode = 0o755 if shared else 0o700
        self._file_mode = 0o444 if shared else 0o400
        self._user = user
        self._values: dict[str, bytes] = {}
        self._mounted: dict[Path, frozenset[str]] = {}

    def names(self) -> list[str]:
        """Return the names of all secrets, sorted."""
        return sorted(self._values)

    def create(self, name: str, value: bytes) -> None:
        """Add a secret; raises ChironError (409) if its name exists."""
        if name in self._values:
            raise ChironError("secret-exists", f"secret {name} already exists", status=409)
        self._values[name] = value

    def update(self, name: str, value: bytes) -> None:
        """Change a secret, also in the folders of running functions; 404 if it is unknown."""
        self._known(name)
        self._values[name] = value
        for folder, used in self._mounted.items():
            if name in used:
                self._write(folder / name, value)

    def delete(self, name: str) -> None:
        """Delete a secret; running functions keep their copy. ChironError (404) if unknown."""
        self._known(name)
        del self._values[name]

    def check(self, needed: Iterable[str]) -> None:
        """Raise ChironError (400) with the first needed secret that is missing."""
        for name in needed:
            if name not in self._values:
                mend = f"faas-cli secret create {name}; with --local, by a file .secrets/{name}"
                said = f"secret {name} not found: create it with {mend} in the current folder"
                raise ChironError("secret-missing", said)

    def mount(self, folder: Path, needed: Iterable[str]) -> None:
        """Write the `needed` secrets into a new `folder`, one file each."""
        folder.parent.mkdir(mode=0o711 if self._user else 0o700, parents=True, exist_ok=True)
        folder.mkdir()
        folder.chmod(self._folder_mode)
        if self._user:
            self._user.own(folder)
        self._mounted[folder] = frozenset(needed)
        for name in self._mounted[folder]:
            self._write(folder / name, self._values[name])

    def unmount(self, folder: Path) -> None:
        """Stop updating the files in `folder`; the caller removes it."""
        del self._mounted[folder]

    def _known(self, name: str) -> None:
        if name not in self._values:
            raise ChironError("secret-unknown", f"secret {name} not found", status=404)

    def _write(self, path: Path, value: bytes) -> None:
        fresh = path.with_name(f".{path.name}.new")
        fresh.touch(mode=0o600)
        fresh.write_bytes(value)
        fresh.chmod(self._file_mode)
        if self._user:
            self._user.own(fresh)
        fresh.replace(path)
