"""Names of functions, secrets, images, backends and providers, and of the gateway's variables."""

from __future__ import annotations

import re
from typing import Literal

from chiron.workflow.errors import ChironError

#: The kinds of replicas: local processes, or Docker containers.
BackendName = Literal["process", "docker"]

NAMESPACE = "openfaas-fn"
#: The variables with the credentials of /system/*.
USER_VARIABLE = "CHIRON_GATEWAY_USER"
PASSWORD_VARIABLE = "CHIRON_GATEWAY_PASSWORD"  # noqa: S105  (a variable's name)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SECRET = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,251}[A-Za-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][-._/:@A-Za-z0-9]{0,254}")


def function_name(name: str) -> str:
    """Return `name` if it is a DNS label, as OpenFaaS requires of a service."""
    if not _LABEL.fullmatch(name):
        message = f"function name {name!r}: use 1 to 63 lower-case letters, digits and hyphens"
        raise ChironError("bad-name", message)
    return name


def secret_name(name: str) -> str:
    """Return `name` if it can be the name of a secret's file."""
    if not _SECRET.fullmatch(name):
        message = f"secret name {name!r}: use letters, digits, '-', '_' and '.'"
        raise ChironError("bad-name", message)
    return name


def image_reference(reference: str) -> str:
    """Return the reference with its tag: ``app`` and ``app:latest`` are one image."""
    if not _IMAGE.fullmatch(reference):
        raise ChironError("bad-image", f"image {reference!r}: not an image reference")
    tagged = ":" in reference.rpartition("/")[2] or "@" in reference
    return reference if tagged else f"{reference}:latest"


def check_namespace(namespace: str | None) -> None:
    """Raise unless `namespace` is absent or the only existing namespace."""
    if namespace and namespace != NAMESPACE:
        message = f"namespace {namespace} not found: this gateway has {NAMESPACE}"
        raise ChironError("unknown-namespace", message)
