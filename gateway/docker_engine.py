"""The Docker engine of this machine, through docker-py; as a program, its containers' supervisor.

The containers' parent is the Docker engine, so they do not end with the gateway. The supervisor
holds one end of a channel, and only the gateway holds the other. The channel closes with the
gateway, even by SIGKILL. Then the supervisor removes the gateway's temporary files, and its
containers unless it reported that none is left. It lives as long, so it imports little.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from chiron.gateway import names, processes
from chiron.workflow.errors import ChironError

#: The timeout of an ordinary answer of the engine, in seconds.
_TIMEOUT_S = 60
#: The network of every engine; this machine has an address on it.
NETWORK = "bridge"
_INTERFACE_OPTION = "com.docker.network.bridge.name"
#: The label of a container with the `processes.identity` of its gateway process.
OWNER_LABEL = "chiron.gateway"
#: The labels with that gateway's URL, and with the container's function.
GATEWAY_URL_LABEL = "chiron.gateway.url"
FUNCTION_LABEL = "com.openfaas.function"
#: The label of an image built by `chiron build`, with the function.
BUILT_LABEL = "chiron.built"

_UNAVAILABLE = 503
#: The control sequences of colours: the engine prints build errors in red.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: The gateway's last message to the supervisor: none of its containers is left.
ALL_CLEAR = b"."
_BETWEEN_LOOKS_S = 0.5
_QUIET_LOOKS = 3
_ENGINE_LIMIT_S = 60.0


def connect() -> Any:
    """Return docker-py's client of the engine at DOCKER_HOST, or at the usual socket.

    Raises ChironError: docker-py is not installed, no engine answers, or access is denied.
    """
    try:
        import docker
    except ImportError:
        line = f"{shlex.quote(sys.executable)} -m pip install 'chiron-openfaas[docker]'"
        message = f"docker-py is not installed: {line}"
        raise ChironError("no-docker-py", message) from None
    with engine_errors():
        return docker.from_env(timeout=_TIMEOUT_S)


@contextlib.contextmanager
def engine_errors() -> Iterator[None]:
    """Turn docker-py's errors, and those of its connection, into ChironErrors."""
    import docker
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        said = error.explanation or str(error)
        raise ChironError("docker-refuses", f"Docker says: {one_line(said)}") from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise _unreachable(error) from error


def one_line(text: object) -> str:
    """Return `text` on one line with single blanks, without colours."""
    return " ".join(_COLOUR.sub("", str(text)).split())


def host_address(client: Any) -> str:
    """Return this machine's address on the engine's bridge, for containers; or ChironError."""
    import psutil  # not in the supervisor, to save memory

    with engine_errors():
        found = client.networks.list(names=[NETWORK])
    options = [n.attrs["Options"] for n in found if n.attrs["Name"] == NETWORK]
    interface = options[0].get(_INTERFACE_OPTION) if options else None
    for address in psutil.net_if_addrs().get(interface or "", []):
        if address.family == socket.AF_INET:
            return address.address
    raise ChironError(
        "no-bridge",
        f"Docker's network {NETWORK} is not on this machine: use this machine's own engine, "
        "neither rootless nor in a virtual machine nor started with --bridge=none",
    )


def find_image(client: Any, reference: str) -> Any:
    """Return the current image of `reference`; ChironError: it is missing, or no engine."""
    import docker

    with engine_errors():
        try:
            return client.images.get(names.image_reference(reference))
        except docker.errors.ImageNotFound:
            mend = "build it with chiron build --backend docker, or with faas-cli build"
            message = f"image {reference} not found in Docker: {mend}"
            raise ChironError("image-missing", message) from None


def owned_containers(client: Any, owner: str | None = None) -> list[Any]:
    """Return the containers of the gateway `owner`, or of all gateways, including ended ones."""
    label = OWNER_LABEL if owner is None else f"{OWNER_LABEL}={owner}"
    with engine_errors():
        found: list[Any] = client.containers.list(
            all=True, filters={"label": label}, ignore_removed=True
        )
    return found


def remove(container: Any) -> None:
    """Remove a container, running or not; ignores a removal by another program meanwhile."""
    with contextlib.suppress(ChironError), engine_errors():
        container.remove(force=True, v=True)


def remove_superseded(client: Any, ident: str) -> None:
    """Remove an image of ours if a later build has taken its name and no container uses it."""
    with contextlib.suppress(ChironError), engine_errors():
        image = client.images.get(ident)
        if BUILT_LABEL in image.labels and not image.tags:
            client.images.remove(ident)  # the engine refuses this while a container uses it


def remove_abandoned(client: Any) -> None:
    """Remove the containers of ended gateways, including gateways killed with their supervisors."""
    for container in owned_containers(client):
        if processes.is_gone(container.labels[OWNER_LABEL]):
            remove(container)


def _unreachable(error: BaseException) -> ChironError:
    where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    causes = list(_causes(error))
    if any(isinstance(cause, PermissionError) for cause in causes):
        return ChironError(
            "docker-forbidden",
            f"you may not use the Docker engine at {where}: run as root, or add yourself to its "
            "group (sudo usermod -aG docker $USER) and log in again",
            status=_UNAVAILABLE,
        )
    return ChironError(
        "no-docker-engine",
        f"no Docker engine answers at {where} ({one_line(causes[-1])}): start it "
        "(sudo systemctl start docker) or set DOCKER_HOST",
        status=_UNAVAILABLE,
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and its causes; urllib3 passes the cause as an argument."""
    yield error
    inner = [argument for argument in error.args if isinstance(argument, BaseException)]
    following = inner[0] if inner else error.__cause__ or error.__context__
    if following is not None:
        yield from _causes(following)


def supervise() -> None:
    """Clean up after the gateway argv[3]: channel (descriptor) argv[1], folder argv[2]."""
    # Only the gateway decides when to stop, by its channel.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    last_word = b""
    try:
        with contextlib.suppress(ConnectionError):
            last_word = socket.socket(fileno=int(sys.argv[1])).recv(1)
        if last_word != ALL_CLEAR:
            _remove_all(sys.argv[3])
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)


def _remove_all(owner: str) -> None:
    """Remove the gateway's containers; lists them repeatedly, as the engine may create more."""
    end = time.monotonic() + _ENGINE_LIMIT_S
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < end:
        try:
            with contextlib.closing(connect()) as client:
                found = owned_containers(client, owner)
                for container in found:
                    remove(container)
            quiet = 0 if found else quiet + 1
        except ChironError:
            quiet = 0  # the engine is down and may return
        time.sleep(_BETWEEN_LOOKS_S)


if __name__ == "__main__":
    supervise()
