"""Whether a Docker engine can be reached, for sandboxes that are containers."""

from __future__ import annotations

import importlib

from installation.findings import Finding

#: Longest that the engine may take to answer, in seconds.
LIMIT_S = 3


def check_docker() -> Finding:
    """Whether docker-py is installed and the engine that it is configured for answers."""
    try:
        docker = importlib.import_module("docker")
    except ImportError:
        fix = "pip install 'chiron-openfaas[docker]'"
        return Finding("docker", False, "docker-py is not installed", fix, required=False)
    try:
        client = docker.from_env(timeout=LIMIT_S)
        try:
            version = client.version()["Version"]
        finally:
            client.close()
    # docker-py lets errors of requests, urllib3 and the socket through besides its own.
    except Exception as error:
        detail = f"the engine does not answer: {_reason(error)}"
        fix = "start it (sudo systemctl start docker) or see installation/docker.md"
        return Finding("docker", False, detail, fix, required=False)
    return Finding("docker", True, f"engine {version}", required=False)


def _reason(error: BaseException) -> str:
    """The innermost cause, on one line: what wraps it repeats it several times over."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return " ".join(str(error).split()) or type(error).__name__
