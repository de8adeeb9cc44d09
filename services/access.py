"""Who may use the services: everybody on this machine, or whoever has the secret of a file."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path

from workflow.errors import ChironError

#: The files in which OpenFaaS keeps user and password, in the folder of its secrets.
_USER_FILE, _PASSWORD_FILE = "basic-auth-user", "basic-auth-password"
#: A shorter secret can be guessed.
_SHORTEST = 8


@dataclass(frozen=True)
class Secret:
    """What the Authorization header of every request has to be.

    Attributes
    ----------
    scheme
        ``Basic`` or ``Bearer``.
    """

    scheme: str
    _value: str = field(repr=False)

    def admits(self, authorization: str | None) -> bool:
        """Whether a request with this Authorization header may pass; takes equally long if not."""
        scheme, _, value = (authorization or "").partition(" ")
        same = hmac.compare_digest(_digest(value.strip()), _digest(self._value))
        return same and scheme.lower() == self.scheme.lower()

    def refusal(self) -> ChironError:
        """The error of a request that may not pass."""
        message = f"the services ask for credentials ({self.scheme}): send the right ones"
        return ChironError("unauthorised", message, status=401)

    @property
    def challenge(self) -> str:
        """The header WWW-Authenticate of the answer to it."""
        return f'{self.scheme} realm="chiron"'


def basic_auth(folder: Path) -> Secret:
    """User and password from the folder where OpenFaaS mounts its secrets; ``bad-secret``."""
    user = _read(folder / _USER_FILE, shortest=1)
    if ":" in user:
        raise _bad(folder / _USER_FILE, "has a colon in it, which Basic auth does not know")
    password = _read(folder / _PASSWORD_FILE, shortest=_SHORTEST)
    return Secret("Basic", base64.b64encode(f"{user}:{password}".encode()).decode("ascii"))


def bearer_token(file: Path) -> Secret:
    """The token in `file`; ``bad-secret``."""
    token = _read(file, shortest=_SHORTEST)
    if not token.isascii() or " " in token:
        raise _bad(file, "has characters that no header can carry: use letters and digits")
    return Secret("Bearer", token)


def _digest(text: str) -> bytes:
    """A digest, as the time that comparing takes may tell how long the secret is."""
    return hashlib.sha256(text.encode()).digest()


def _read(file: Path, shortest: int) -> str:
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise _bad(file, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _bad(file, "is not UTF-8 text") from None
    if len(secret) < shortest or not secret.isprintable():
        raise _bad(file, f"needs one line of at least {shortest} characters")
    return secret


def _bad(file: Path, what: str) -> ChironError:
    return ChironError("bad-secret", f"secret file {file} {what}")
