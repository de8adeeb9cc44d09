"""Which requests are admitted: those with the credentials, and none of another site's web page.

A user's browser reaches what other machines do not. The gateway and the services refuse the same.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from chiron.gateway.errors import GatewayError

JSON = "application/json"
_HOST = re.compile(r"(?:\[([^]]*)\]|([^:]*))(?::\d*)?")


@dataclass(frozen=True)
class Credentials:
    """The user and password that /system/* asks for."""

    user: str
    password: str

    def admit(self, authorization: str | None) -> bool:
        """Whether an Authorization header carries exactly these."""
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            given = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(given, f"{self.user}:{self.password}".encode())


def is_loopback(host: str) -> bool:
    """Whether what listens on `host` is reached from this machine alone."""
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
        header: its headers, by name.
        types: media types that a POST may have. Of those that a page may send elsewhere without
            being asked first, give none that does harm without an Origin.
        secret: whether a secret is asked for as well. Then any name will do, as no page under a
            rebound name knows it.

    Raises GatewayError: 403 ``unknown-host``, ``cross-origin`` or ``callback``; 415
    ``unsupported-media-type``.
    """
    host = header("Host") or ""
    if not secret and not _cannot_be_rebound(host):
        message = (
            f"Host {host!a} may be a web page's: use an address or localhost, or ask for a secret"
        )
        raise GatewayError("unknown-host", message, 403)
    if header("Origin") not in (None, f"http://{host}", f"https://{host}"):
        raise GatewayError("cross-origin", "web pages of other sites may not do this", 403)
    # Whoever may call functions chooses where to and, by an echo, what the gateway itself posts.
    if header("X-Function-Status") is not None:
        raise GatewayError("callback", "the answer of an asynchronous call may not do this", 403)
    empty = header("Content-Length") in (None, "0") and header("Transfer-Encoding") is None
    if method == "POST" and not empty:
        media_type = (header("Content-Type") or "").partition(";")[0].strip().lower()
        if media_type not in types:
            message = f"the body has to be {' or '.join(types)}, by its Content-Type"
            raise GatewayError("unsupported-media-type", message, 415)


def _cannot_be_rebound(host: str) -> bool:
    """Whether no page of another site has this for its own: only names are bound to addresses."""
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
