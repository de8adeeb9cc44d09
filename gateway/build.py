"""Builds an image from a template and a handler folder, as `faas-cli build` does in Docker."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gateway import handlers, names, paths, requirements, venvs
from gateway.errors import GatewayError
from gateway.images import Image, ImageStore

#: What tools leave beside code, perhaps while it is copied.
_SKIPPED = re.compile(r"__pycache__|\..*_cache|\.git")


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


_FLASK = Language("plain", {"handler_style": "flask"}, "handle")
_HTTP = Language("plain", {"handler_style": "http"}, "handle")
LANGUAGES = {
    "python3-flask": _FLASK,
    "python3-flask-debian": _FLASK,
    "python3-http": _HTTP,
    "python3-http-debian": _HTTP,
    "python3-wrap": Language("python3-wrap", {}, "WRAP"),
}


def build(
    function: FunctionSource,
    templates: Path,
    store: ImageStore,
    venv_cache: Path | None = None,
) -> Image:
    """Build `function` into `store`; its image is switched to the new version in one step.

    Args:
        function: what to build. A bad one is refused before anything is written.
        templates: folder with one folder per template (``plain``, ``python3-wrap``).
        store: where the image goes.
        venv_cache: where venvs are kept; ``$CHIRON_HOME/venvs`` if None.

    Raises:
        GatewayError: unknown lang, missing template or handler, requirements pip cannot install.
    """
    checked = check(function, templates)
    python = venvs.interpreter(function.name, checked.requirements, venv_cache or paths.venvs())
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
    handlers.check(function.name, function.handler, language.entry)
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
