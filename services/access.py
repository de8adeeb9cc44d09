"""Access to the services, and the handling of every request before and after its endpoint."""

from __future__ import annotations

import logging
import re
import secrets
import time
from pathlib import Path

from flask import Flask, Response, g, request

from chiron.gateway.access import JSON, refuse_cross_site
from chiron.openfaas.credentials import Credentials
from chiron.services.strict_request import FORM
from chiron.workflow.errors import ChironError

#: The files with user and password in OpenFaaS's folder of secrets.
SECRET_FILES = ("basic-auth-user", "basic-auth-password")
#: The fewest characters of a secret: a shorter secret can be guessed.
_SHORTEST = 8
REQUEST_ID = "X-Request-Id"
#: The ids that a client may give its requests.
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
#: The media types of bodies; pages of other sites can send forms too, but only with their Origin.
_TYPES = (JSON, FORM)
_log = logging.getLogger("services")


def refusal(secret: Credentials) -> ChironError:
    """Return the error of a request without the secret."""
    message = f"the services ask for credentials ({secret.scheme}): send the right ones"
    return ChironError("unauthorised", message, status=401)


def challenges(secret: Credentials) -> list[str]:
    """Return that answer's WWW-Authenticate headers, also for Basic, which browsers support."""
    return [f'{scheme} realm="chiron"' for scheme in dict.fromkeys((secret.scheme, "Basic"))]


def basic_auth(folder: Path) -> Credentials:
    """Read user and password from OpenFaaS's folder of secrets; raises ``bad-secret``."""
    user_file, password_file = (folder / name for name in SECRET_FILES)
    user = _read(user_file, shortest=1)
    if ":" in user:
        raise _bad(user_file, "has a colon in it, which Basic auth does not know")
    password = _read(password_file, shortest=_SHORTEST)
    return Credentials.basic(user, password)


def bearer_token(file: Path) -> Credentials:
    """Read the token in `file`; raises ``bad-secret``."""
    token = _read(file, shortest=_SHORTEST)
    if not token.isascii() or " " in token:
        raise _bad(file, "has characters that no header can carry: use letters and digits")
    return Credentials.bearer(token)


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


def guard(app: Flask, secret: Credentials | None) -> None:
    """Have `app` refuse clients without access, and log requests without their content."""

    def begin() -> None:
        given = request.headers.get(REQUEST_ID, "")
        g.request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        g.began = time.perf_counter()
        header = request.headers.get
        refuse_cross_site(request.method, header, types=_TYPES, secret=secret is not None)
        if secret is not None and not secret.admit(header("Authorization")):
            raise refusal(secret)

    def end(response: Response) -> Response:
        if response.status_code == 401 and secret is not None:
            for challenge in challenges(secret):
                response.headers.add("WWW-Authenticate", challenge)
        response.headers[REQUEST_ID] = g.request_id
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Cache-Control"] = "no-store"
        fields = {
            "request_id": g.request_id,
            "method": request.method if request.url_rule else "-",
            "route": request.url_rule.rule if request.url_rule else "-",
            "status": response.status_code,
            "ms": round((time.perf_counter() - g.began) * 1000, 1),
        }
        _log.info("request", extra=fields)
        return response

    app.before_request(begin)
    app.after_request(end)
