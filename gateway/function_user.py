"""The user that functions run as if root starts the gateway: a user that owns nothing else."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from chiron.workflow.errors import ChironError

DEFAULT = "nobody"


@dataclass(frozen=True)
class FunctionUser:
    """A user of this machine, by name and ids."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls, name: str) -> FunctionUser | None:
        """Return the user `name`, or None to keep this user; ChironError if there is none."""
        if os.geteuid() != 0:
            return None
        try:
            entry = pwd.getpwnam(name)
        except KeyError as error:
            message = (
                f"there is no user {name}: name another with --user of python -m chiron.gateway"
            )
            raise ChironError("unknown-user", message) from error
        return cls(name, entry.pw_uid, entry.pw_gid) if entry.pw_uid else None

    def own(self, path: Path) -> None:
        """Make the user the owner of a file or folder."""
        os.chown(path, self.uid, self.gid)

    def barred(self, *paths: Path) -> Path | None:
        """Return the first file or folder towards `paths` that the user cannot enter, or None."""
        for path in paths:
            for step in (*reversed(path.parents), path):
                if not self._may_pass(step):
                    return step
        return None

    def _may_pass(self, path: Path) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            needed = stat.S_IXUSR
        else:
            needed = stat.S_IXGRP if status.st_gid == self.gid else stat.S_IXOTH
        return bool(status.st_mode & needed)
