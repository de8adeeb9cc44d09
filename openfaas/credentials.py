"""The gateway's URL and credentials, as faas-cli would choose them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from chiron.workflow.documents import Document, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.strict_yaml import load_yaml

DEFAULT_GATEWAY = "http://127.0.0.1:8080"
#: The folder with a file for each secret, from which faas-cli local-run takes them.
SECRETS = Path(".secrets")


@dataclass(frozen=True)
class Credentials:
    """The content of an Authorization header: user and password, or a token."""

    #: ``Basic`` or ``Bearer``.
    scheme: str
    _value: str = field(repr=False)

    @classmethod
    def basic(cls, user: str, password: str) -> Credentials:
        return cls("Basic", base64.b64encode(f"{user}:{password}".encode()).decode("ascii"))

    @classmethod
    def bearer(cls, token: str) -> Credentials:
        """Return the token of a gateway with single sign-on."""
        return cls("Bearer", token)

    @property
    def authorization(self) -> str:
        return f"{self.scheme} {self._value}"

    def admit(self, authorization: str | None) -> bool:
        """Return whether a request's Authorization header matches, in constant time.

        A token may also be sent as the password of Basic authentication, with any user: browsers
        ask for user and password, not for tokens.
        """
        scheme, _, value = (authorization or "").partition(" ")
        if scheme.lower() == "basic" and self.scheme == "Bearer":
            scheme, value = self.scheme, _password(value)
        same = hmac.compare_digest(_digest(value.strip()), _digest(self._value))
        return same and scheme.lower() == self.scheme.lower()


def _password(encoded: str) -> str:
    """Return the password of Basic authentication; empty if there is none."""
    with suppress(binascii.Error, UnicodeDecodeError, ValueError):
        return base64.b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    return ""


def _digest(text: str) -> bytes:
    """Return a digest to compare, as the time of a comparison may reveal the secret's length."""
    return hashlib.sha256(text.encode()).digest()


def read_secrets(folder: Path) -> dict[str, str]:
    """Return the values of the secrets in the files of `folder`, by name; empty without a folder.

    Raises ``bad-secret`` for a file that is not text, or is empty: faas-cli stores no such secret.
    """
    found = {}
    for file in sorted(filter(Path.is_file, folder.glob("[!.]*"))):
        try:
            found[file.name] = file.read_bytes().decode()
        except (UnicodeDecodeError, OSError) as error:
            message = f"secret {file} cannot be read as text: {error}"
            raise ChironError("bad-secret", message) from None
        if not found[file.name].strip():
            message = f"secret {file} is empty: write its value into the file, or remove it"
            raise ChironError("bad-secret", message)
    return found


def gateway_url(flag: str | None, variables: Mapping[str, str]) -> str:
    """Return the gateway's URL, normalised as by faas-cli: `flag`, OPENFAAS_URL, or loopback.

    Raises ``bad-gateway-url`` for a scheme other than http and https.

    >>> gateway_url("Gateway.Example.com/", {})
    'http://gateway.example.com'
    """
    url = (flag or variables.get("OPENFAAS_URL") or DEFAULT_GATEWAY).rstrip("/").lower()
    scheme, given, _ = url.partition("://")
    if given and scheme not in ("http", "https"):
        message = f"gateway URL {url!a} begins with {scheme!a}: begin it with http:// or https://"
        raise ChironError("bad-gateway-url", message)
    return url if given else f"http://{url}"


def config_file(variables: Mapping[str, str]) -> Path:
    """Return the path of faas-cli's credentials: in OPENFAAS_CONFIG, or a default (CI differs)."""
    folder = variables.get("OPENFAAS_CONFIG")
    if not folder:
        in_ci = variables.get("CI") in ("true", "1")
        folder = ".openfaas" if in_ci else "~/.openfaas"
    return Path(folder).expanduser() / "config.yml"


def credentials_for(url: str, variables: Mapping[str, str]) -> Credentials | None:
    """Return the credentials saved by ``faas-cli login`` for `url`, or None; ``bad-config``."""
    path = config_file(variables)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _bad_config(path, str(error)) from None
    try:
        config = validate(_Config, load_yaml(text, str(path)) or {}, str(path))
    except ChironError as error:
        raise _bad_config(path, error.message) from None
    saved = next((auth for auth in config.auths or () if auth.gateway == url), None)
    if saved is None:
        return None
    return _basic(saved.token, path) if saved.auth == "basic" else Credentials.bearer(saved.token)


class _Auth(Document, extra="ignore"):
    gateway: str = ""
    auth: str = ""
    token: str = ""


class _Config(Document, extra="ignore"):
    auths: list[_Auth] | None = None


def _basic(token: str, path: Path) -> Credentials:
    try:
        user, colon, password = base64.b64decode(token, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise _bad_config(path, "a token is not base64") from None
    if not colon:
        raise _bad_config(path, "a token has no user and password")
    return Credentials.basic(user, password)


def _bad_config(path: Path, reason: str) -> ChironError:
    message = f"{path} cannot be used ({reason}): run faas-cli login again"
    return ChironError("bad-config", message, path=str(path))
