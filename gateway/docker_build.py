"""Builds an image in the Docker engine, of the same template folder that `faas-cli build` uses."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway import docker_engine
from gateway.build import FunctionSource, check, compose
from gateway.docker_engine import engine_errors, one_line
from gateway.errors import GatewayError

#: The stage of a template's Dockerfile that runs index.py without of-watchdog.
STAGE = "bare"
_LINES_SHOWN = 3


def build_in_docker(
    function: FunctionSource, templates: Path, arguments: Mapping[str, str] | None = None
) -> str:
    """Build `function` and tag it with its image reference; returns the image's id.

    Args:
        function: what to build. A bad one is refused before the engine is asked.
        templates: folder with one folder per template, each with a Dockerfile.
        arguments: build arguments of the template's Dockerfile, such as ``BASE_IMAGE``.

    Raises:
        GatewayError: as `gateway.build.build`, no engine to be used, or a build that fails.
    """
    checked = check(function, templates)
    with (
        tempfile.TemporaryDirectory(prefix="chiron-build-") as scratch,
        contextlib.closing(docker_engine.connect()) as client,
    ):
        context = Path(scratch) / "context"
        context.mkdir()
        compose(function, checked.template, context)
        # What pip gets is what was looked at.
        asked = "".join(f"{line}\n" for line in checked.requirements)
        (context / "function" / "requirements.txt").write_text(asked, encoding="utf-8")
        environment = {**checked.language.env, **function.env}
        return _build(
            client, function, checked.reference, context, environment | dict(arguments or {})
        )


def _build(
    client: Any, function: FunctionSource, tag: str, context: Path, arguments: dict[str, str]
) -> str:
    import docker

    before = _ident(client, tag)
    with engine_errors():
        try:
            image, _ = client.images.build(
                path=str(context),
                tag=tag,
                target=STAGE,
                buildargs=arguments,
                labels={docker_engine.BUILT_LABEL: function.name},
                rm=True,
                forcerm=True,
            )
        except docker.errors.BuildError as error:
            base = arguments.get("BASE_IMAGE", "the template's base image")
            raise GatewayError(
                "build-failed",
                f"function {function.name}: Docker cannot build it on {base}: {_said(error)}",
            ) from error
    if before is not None:
        docker_engine.remove_superseded(client, before)
    return str(image.id)


def _ident(client: Any, tag: str) -> str | None:
    """The id of the image that has the name `tag`; None where none has."""
    with contextlib.suppress(GatewayError):
        return str(docker_engine.find_image(client, tag).id)
    return None


def _said(error: Any) -> str:
    """The end of what the failing step wrote, and the engine's verdict."""
    lines = [entry["stream"].strip() for entry in error.build_log if entry.get("stream")]
    shown = [one_line(line) for line in lines if line][-_LINES_SHOWN:]
    return " | ".join([*shown, one_line(error.msg)])
