"""Admission of requests: by credentials, and never from another site's web page.

A user's browser can reach addresses that other machines cannot. The services refuse the same.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from chiron.workflow.errors import ChironError

JSON = "application/json"
_HOST = re.compile(r"(?:\[([^]]*)\]|([^:]*))(?::\d*)?")


@dataclass(frozen=True)
class Credentials:
    """The user and password that /system/* requires."""

    user: str
    password: str

    def admit(self, authorization: str | None) -> bool:
        """Return whether an Authorization header has exactly these credentials."""
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            given = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(given, f"{self.user}:{self.password}".encode())


def is_loopback(host: str) -> bool:
    """Return whether a listener on `host` is reachable only from this machine."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def refuse_cross_site(
    method: str,
    header: Callable[[str], str | None],
    *,
    types: Collection[str] = (JSON,),
    secret: bool = False,
) -> None:
    """Refuse a request that a web page of another site may have made.

    Args:
        method: the request's method.
        header: returns the request's header of a name.
        types: media types that a POST may have. Browsers let a page send some types to other sites
            without a preflight: give none of these that does harm without an Origin.
        secret: whether a secret is required as well. Then any Host is accepted, as no page under a
            rebound name has the secret.

    Raises ChironError: 403 ``unknown-host``, ``cross-origin`` or ``callback``; 415
    ``unsupported-media-type``.
    """
    host = header("Host") or ""
    if not secret and not _cannot_be_rebound(host):
        message = (
            f"Host {host!a} may be a web page's: use an address or localhost, or ask for a secret"
        )
        raise ChironError("unknown-host", message, status=403)
    if header("Origin") not in (None, f"http://{host}", f"https://{host}"):
        raise ChironError("cross-origin", "web pages of other sites may not do this", status=403)
    # A caller of functions chooses the callback's URL and, by an echo, its body.
    if header("X-Function-Status") is not None:
        message = "the answer of an asynchronous call may not do this"
        raise ChironError("callback", message, status=403)
    empty = header("Content-Length") in (None, "0") and header("Transfer-Encoding") is None
    if method == "POST" and not empty:
        media_type = (header("Content-Type") or "").partition(";")[0].strip().lower()
        if media_type not in types:
            message = f"the body has to be {' or '.join(types)}, by its Content-Type"
            raise ChironError("unsupported-media-type", message, status=415)


def _cannot_be_rebound(host: str) -> bool:
    """Return whether `host` cannot be a name of another site: only names can be rebound."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1] or match[2]
    return name.lower() == "localhost" or _address(name) is not None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
