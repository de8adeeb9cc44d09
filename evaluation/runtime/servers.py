"""Starts Redis and MinIO on this machine for the length of a block."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import urllib3

from chiron.generator.stores import StorePlace
from chiron.workflow.errors import ChironError

_HERE = "127.0.0.1"
_USER, _BUCKET = "chiron", "objects"
_FORBIDDEN = 403
#: Longest wait for a server to be ready, in seconds.
_STARTING_S = 60.0
#: The command that installs each server.
_BRINGS = {"redis-server": "apt-get install redis-server", "minio": "make minio"}


def program(name: str) -> str | None:
    """Return the path of a server's program, on PATH or beside Python; None if missing."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


@contextmanager
def redis() -> Iterator[StorePlace]:
    """Run a Redis that stores nothing on disk. Raises ``not-installed``, ``no-store``."""
    password, port = secrets.token_hex(), _free_port()
    command = ["redis-server", "--bind", _HERE, "--port", str(port), "--requirepass", password]
    with _running([*command, "--save", "", "--appendonly", "no"], lambda: _listens(port)):
        yield StorePlace(f"redis://default@{_HERE}:{port}", password)


@contextmanager
def minio() -> Iterator[StorePlace]:
    """Run a MinIO that stores objects in a temporary folder; raises the errors of `redis`."""
    password, port = secrets.token_hex(), _free_port()
    settings = {"MINIO_ROOT_USER": _USER, "MINIO_ROOT_PASSWORD": password, "MINIO_BROWSER": "off"}
    with tempfile.TemporaryDirectory(prefix="chiron-") as folder:
        (Path(folder) / _BUCKET).mkdir()  # MinIO takes a folder for a bucket
        command = ["minio", "server", folder, "--address", f"{_HERE}:{port}", "--quiet"]
        bucket = f"http://{_HERE}:{port}/{_BUCKET}"
        with _running(command, lambda: _refuses(bucket), settings | {"HOME": folder}):
            yield StorePlace(f"s3://{_USER}@{_HERE}:{port}/{_BUCKET}", password)


class Server(NamedTuple):
    """A store: the function that starts it, and its program."""

    start: Callable[[], AbstractContextManager[StorePlace]]
    program: str


SERVERS: Mapping[str, Server] = {
    "Redis": Server(redis, "redis-server"),
    "MinIO": Server(minio, "minio"),
}


def missing(store: str) -> str | None:
    """Return how to install the store's program; None if it is installed."""
    name = SERVERS[store].program
    return None if program(name) else f"{name} is missing: {_BRINGS[name]}"


@contextmanager
def _running(
    command: Sequence[str], ready: Callable[[], bool], settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    name, *arguments = command
    found = program(name)
    if found is None:
        raise ChironError("not-installed", f"{name} is missing: {_BRINGS[name]}")
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [found, *arguments],
            env=os.environ | dict(settings or {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            if not _begins(server, ready):
                log.seek(0)
                said = log.read().decode(errors="replace").strip().splitlines()[-1:]
                message = f"{name} does not start: {' '.join(said)}"
                raise ChironError("no-store", message, status=500)
            yield
        finally:
            server.kill()


def _begins(server: subprocess.Popen[bytes], ready: Callable[[], bool]) -> bool:
    """Wait until `server` is ready; return False if it ends or `_STARTING_S` pass."""
    until = time.monotonic() + _STARTING_S
    while server.poll() is None and time.monotonic() < until:
        if ready():
            return True
        time.sleep(0.01)
    return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HERE, port)) == 0


def _refuses(url: str) -> bool:
    """Tell whether `url` is forbidden to strangers: until MinIO is ready, it answers 503."""
    try:
        return urllib3.request("GET", url, retries=False).status == _FORBIDDEN
    except urllib3.exceptions.HTTPError:
        return False


def _free_port() -> int:
    with socket.create_server((_HERE, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
