"""`python -m gateway`: runs the embedded gateway and prints its URL as one JSON line."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path
from typing import get_args

from gateway import linux
from gateway.auth import Credentials
from gateway.errors import GatewayError
from gateway.function_user import DEFAULT
from gateway.names import PASSWORD_VARIABLE, USER_VARIABLE, BackendName
from gateway.replica import Times
from gateway.run import run
from gateway.server import Settings


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status: 2 for what the caller can mend."""
    linux.forbid_inspection()
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        settings = Settings(
            host=options.host,
            port=options.port,
            backend=options.backend,
            images=options.images,
            credentials=_credentials(options.with_stdin),
            times=Times(ready=options.ready_timeout),
            idle_s=options.idle_timeout,
            user=options.user,
        )
        run(settings, lambda url: print(json.dumps({"url": url}), flush=True), options.with_stdin)
    except GatewayError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gateway",
        description="Runs an OpenFaaS-compatible gateway; functions are processes or containers.",
        epilog=f"{USER_VARIABLE} and {PASSWORD_VARIABLE} set the credentials of /system/*.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="0 for a free one (default 8080)")
    parser.add_argument(
        "--backend",
        choices=get_args(BackendName),
        default="process",
        help="what a replica is (default %(default)s)",
    )
    parser.add_argument(
        "--images", type=Path, help="image store of processes (default $CHIRON_HOME/images)"
    )
    parser.add_argument(
        "--ready-timeout", type=float, default=Times.ready, metavar="S", help="seconds to get ready"
    )
    parser.add_argument(
        "--idle-timeout",
        type=float,
        default=Settings.idle_s,
        metavar="S",
        help="seconds that a connection may be idle or stuck (default %(default)g)",
    )
    parser.add_argument(
        "--user", default=DEFAULT, help="whom functions run as, for root (default %(default)s)"
    )
    parser.add_argument(
        "--with-stdin",
        action="store_true",
        help="take [USER, PASSWORD] from the first line of standard input, and end when it ends",
    )
    return parser


def _credentials(from_stdin: bool) -> Credentials | None:
    """Those that were given, if any; raises GatewayError where there is only half of them."""
    if from_stdin:
        user, password = json.loads(sys.stdin.readline() or "[null, null]")
    else:
        user, password = os.environ.get(USER_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    if bool(user) != bool(password):
        raise GatewayError(
            "half-credentials",
            f"credentials need both: set {USER_VARIABLE} and {PASSWORD_VARIABLE}, or neither",
        )
    return Credentials(user, password) if user and password else None


if __name__ == "__main__":
    sys.exit(main())
