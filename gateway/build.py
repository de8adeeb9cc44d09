"""Builds an image from a template and a handler folder: for processes, or in the Docker engine."""

from __future__ import annotations

import ast
import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway import docker_engine, names, requirements
from gateway.docker_engine import engine_errors, one_line
from gateway.errors import GatewayError
from gateway.handler_folder import STYLES, bindings
from gateway.images import Image, ImageStore, venvs_folder

#: What tools leave beside code, perhaps while it is copied.
_SKIPPED = re.compile(r"__pycache__|\..*_cache|\.git")
#: The stage of a template's Dockerfile that runs index.py without of-watchdog.
DOCKER_STAGE = "bare"
_LINES_SHOWN = 3


def check_handler(function: str, folder: Path, name: str) -> None:
    """Raise GatewayError unless ``folder/handler.py`` defines `name` at its top level."""
    path = folder / "handler.py"
    if not path.is_file():
        raise GatewayError(
            "handler-missing",
            f"function {function}: no handler.py in {folder}: create it with a {name}",
        )
    try:
        module = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", str(error))
        raise GatewayError(
            "handler-syntax", f"function {function}: {path}:{line} is not valid Python: {reason}"
        ) from error
    if not {bound for bound, _ in bindings(module)} & {name, "*"}:
        raise GatewayError(
            "handler-without-entry",
            f"function {function}: {path} defines no {name} at its top level: add one",
        )


@dataclass(frozen=True)
class FunctionSource:
    """One entry of a stack.yaml: what to build, from where, under which image reference."""

    name: str
    image: str
    lang: str
    handler: Path
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Language:
    """How a `lang` of stack.yaml is run: its template, what it tells it, the name it calls."""

    template: str
    env: Mapping[str, str]
    entry: str


LANGUAGES = {
    lang: Language("plain", {"handler_style": style}, "handle") for lang, style in STYLES.items()
} | {"python3-wrap": Language("python3-wrap", {}, "WRAP")}


def build(
    function: FunctionSource,
    templates: Path,
    store: ImageStore,
    venv_cache: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Image:
    """Build `function` into `store`; its image is switched to the new version in one step.

    Args:
        function: what to build. A bad one is refused before anything is written.
        templates: folder with one folder per template (``plain``, ``python3-wrap``).
        store: where the image goes.
        venv_cache: where venvs are kept; ``$CHIRON_HOME/venvs`` if None.
        say: told what is installed for it, if anything.

    Raises:
        GatewayError: unknown lang, missing template or handler, requirements pip cannot install.
    """
    checked = check(function, templates)
    cache = venv_cache or venvs_folder()
    python = requirements.interpreter(function.name, checked.requirements, cache, say)
    with store.new_version(checked.reference) as folder:
        compose(function, checked.template, folder)
        image = Image(
            name=checked.reference,
            template=checked.language.template,
            python=python,
            env={**checked.language.env, **function.env},
            created=datetime.now(UTC).isoformat(),
            folder=folder,
        )
        image.write()
    return image


@dataclass(frozen=True)
class Checked:
    """What a good function comes to: its image's full reference, its template, its requirements."""

    reference: str
    language: Language
    template: Path
    requirements: tuple[str, ...]


def check(function: FunctionSource, templates: Path) -> Checked:
    """Look at a function before anything is built of it; raises GatewayError as `build` does."""
    names.function_name(function.name)
    reference = names.image_reference(function.image)
    language = _language(function)
    template = templates / language.template
    if not (template / "index.py").is_file():
        raise GatewayError(
            "template-missing",
            f"function {function.name}: template {language.template} has no index.py in {template}",
        )
    check_handler(function.name, function.handler, language.entry)
    files = [folder / "requirements.txt" for folder in (template, function.handler)]
    return Checked(reference, language, template, requirements.union(function.name, *files))


def _language(function: FunctionSource) -> Language:
    try:
        return LANGUAGES[function.lang]
    except KeyError:
        raise GatewayError(
            "unknown-lang",
            f"function {function.name}: lang {function.lang!r} is unknown: "
            f"use one of {', '.join(LANGUAGES)}",
        ) from None


def compose(function: FunctionSource, template: Path, folder: Path) -> None:
    """Put the template and the handler together in the empty `folder`, as faas-cli does."""

    def skipped(source: str, entries: list[str]) -> set[str]:
        placeholder = {"function"} if Path(source) == template else set()
        return placeholder | {entry for entry in entries if _SKIPPED.fullmatch(entry)}

    try:
        shutil.copytree(template, folder, ignore=skipped, dirs_exist_ok=True)
        shutil.copytree(function.handler, folder / "function", ignore=skipped)
    except (OSError, shutil.Error) as error:
        raise GatewayError(
            "copy-failed", f"function {function.name}: cannot copy {function.handler}: {error}"
        ) from error
    # Docker's template does the same, so that `from function import handler` finds a package.
    (folder / "function" / "__init__.py").touch()


def build_in_docker(
    function: FunctionSource, templates: Path, arguments: Mapping[str, str] | None = None
) -> str:
    """Build `function` and tag it with its image reference; returns the image's id.

    Args:
        function: what to build. A bad one is refused before the engine is asked.
        templates: folder with one folder per template, each with a Dockerfile.
        arguments: build arguments of the template's Dockerfile, such as ``BASE_IMAGE``.

    Raises:
        GatewayError: as `build`, no engine to be used, or a build that fails.
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
        return _build_in_engine(
            client, function, checked.reference, context, environment | dict(arguments or {})
        )


def _build_in_engine(
    client: Any, function: FunctionSource, tag: str, context: Path, arguments: dict[str, str]
) -> str:
    import docker

    before = _ident(client, tag)
    with engine_errors():
        try:
            image, _ = client.images.build(
                path=str(context),
                tag=tag,
                target=DOCKER_STAGE,
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
