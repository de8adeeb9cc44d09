"""Starts Redis for one workflow, fills it, and announces its address to the functions."""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice

import redis

from .client import FUNCTION, meeting_point

Commands = Callable[[], Iterator[tuple[str | int, ...]]]

MISSING = (
    "redis-server is missing: apt-get install redis-server, or set REDIS_URL to redis://HOST:PORT/0"
)
ATTEMPTS = 5
START_S = 10.0
BATCH = 2000  # commands a round trip
# Loopback only, nothing on disk; Redis evicts the functions' keys before the data set.
SETTINGS = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning",
            "--maxmemory", "128mb", "--maxmemory-policy", "volatile-ttl"]  # fmt: skip

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def free_port() -> int:
    """Return a free port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def start(folder: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start redis-server with the working directory `folder`; return the process and the port.

    Raises:
        RuntimeError: it is not installed, or does not start; the message has the fix.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError(MISSING)
    for _ in range(ATTEMPTS):  # another program may take the port first
        port = free_port()
        process = subprocess.Popen(
            [program, "--port", str(port), "--dir", folder, *SETTINGS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,
        )
        if _answers(process, port):
            return process, port
    raise RuntimeError(f"{program} does not start: look at what it says when run by hand")


def _end_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until `process` answers on `port`; if it does not, kill it and return False."""
    end = time.monotonic() + START_S
    with redis.Redis(port=port, socket_timeout=START_S) as client:
        while process.poll() is None and time.monotonic() < end:
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.02)
            else:
                # If another program took the port first, another server answers.
                return client.info("server")["process_id"] == process.pid
    process.kill()
    process.wait()
    return False


def fill(url: str, prefix: str, version: str, commands: Commands) -> None:
    """Write the data set, whose keys begin with `prefix`, unless the store has this version."""
    with redis.Redis.from_url(url, decode_responses=True) as store:
        if store.get(f"{prefix}version") == version:
            return
        left = commands()
        while batch := list(islice(left, BATCH)):
            with store.pipeline(transaction=False) as pipeline:
                for command in batch:
                    pipeline.execute_command(*command)
                pipeline.execute()
        store.set(f"{prefix}version", version)


def serve(prefix: str, version: str, commands: Commands) -> str:
    """Fill the store of REDIS_URL with a data set; return the store's URL, or an error message.

    For `function:NAME` it starts a Redis that ends with this process, and announces its address.
    """
    url = os.environ["REDIS_URL"]
    if not url.startswith(FUNCTION):
        fill(url, prefix, version, commands)
        return url
    try:
        _, port = start(tempfile.gettempdir())
    except RuntimeError as error:
        answer = str(error)
    else:
        answer = f"redis://127.0.0.1:{port}/0"
        fill(answer, prefix, version, commands)
    where = meeting_point(url.removeprefix(FUNCTION))
    threading.Thread(target=announce, args=(where, answer), daemon=True).start()
    return answer


def announce(where: str, answer: str) -> None:
    """Send `answer` to every client of the Unix socket `where`, without end."""
    with socket.socket(socket.AF_UNIX) as listener:
        while True:
            try:
                listener.bind(where)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                time.sleep(0.01)  # the previous replica still has the socket
        listener.listen(socket.SOMAXCONN)
        while True:
            with listener.accept()[0] as peer, contextlib.suppress(OSError):
                peer.sendall(answer.encode())
