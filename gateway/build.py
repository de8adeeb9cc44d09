"""Builds an image from a template and a handler folder: for processes, or in the Docker engine."""

from __future__ import annotations

import compileall
import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from chiron.gateway import docker_engine, javac, names, npm, requirements
from chiron.gateway.docker_engine import engine_errors, one_line
from chiron.gateway.images import Image, ImageStore, home
from chiron.openfaas.handler_folder import CONTAINER_FOLDER, STYLES, bindings, handler_file, meant
from chiron.workflow.errors import ChironError
from chiron.workflow.python_code import syntax_tree

#: Files that tools leave beside code, perhaps while it is copied.
_SKIPPED = re.compile(r"__pycache__|\.(?:mypy|pytest|ruff)_cache|\.git|.*\.pyc\.\d+")
#: The stage of a template's Dockerfile that runs index.py without of-watchdog.
DOCKER_STAGE = "bare"
_LINES_SHOWN = 3
_WRAP, _PLAIN = "python3-wrap", "plain"
#: The files of the wrap runtime that the runner of plain handlers needs, below its folder.
_SHARED = (
    "config/sandbox.py",
    "core/memory_shares.py",
    "core/shedding.py",
    "event_loop/threads.py",
    "functions/answers.py",
    "http/server",
    "values/malloc.py",
)
#: faas-cli's lang of a handler folder with its own Dockerfile.
_DOCKERFILE = "dockerfile"
LANGS = (*STYLES, _WRAP)


@dataclass(frozen=True)
class FunctionSource:
    """A stack.yaml entry to build; ``own_template`` is the user's template of a foreign `lang`."""

    name: str
    image: str
    lang: str
    handler: Path
    own_template: Path | None = None

    def fault(self, code: str, message: str) -> ChironError:
        return ChironError(code, f"function {self.name}: {message}")


def build(
    function: FunctionSource,
    templates: Path,
    store: ImageStore,
    venv_cache: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Image:
    """Build `function` into `store`; its image is switched to the new version in one step.

    Args:
        function: the function to build; a bad function is refused before anything is written.
        templates: folder with one folder per template (``plain``, ``python3-wrap``).
        store: the store of the image.
        venv_cache: the folder of venvs; ``$CHIRON_HOME/venvs`` if None.
        say: called with each installation, and with paths in the code that will not exist.

    Raises ChironError: unknown lang, missing template or handler, requirements pip cannot install.
    """
    checked = check(function, templates)
    if _names(function.handler, CONTAINER_FOLDER) and not Path(CONTAINER_FOLDER).exists():
        say(
            f"function {function.name} names {CONTAINER_FOLDER}, which only containers have: "
            "run it with --backend docker, or name its files by Path(__file__).parent"
        )
    cache = venv_cache or home() / "venvs"
    python = requirements.interpreter(function.name, checked.requirements, cache, say)
    with store.new_version(checked.reference) as folder:
        compose(function, partial(_link, checked.template, store), folder)
        npm.install(function.name, folder / "function", say)
        javac.compile_functions(function.name, folder, home() / "java", say)
        image = Image(
            name=checked.reference,
            template=checked.template.name,
            python=python,
            env=checked.env,
            created=datetime.now(UTC).isoformat(),
            folder=folder,
        )
        image.write()
    if checked.template.name == _WRAP:
        store.remove_old_tags(checked.reference)
    return image


@dataclass(frozen=True)
class CheckedBuild:
    """A checked function: its image's full reference, its template, variables and requirements."""

    reference: str
    template: Path
    env: dict[str, str]
    requirements: tuple[str, ...]


def check(function: FunctionSource, templates: Path) -> CheckedBuild:
    """Check a function before it is built; raises ChironError as `build` does."""
    names.function_name(function.name)
    reference = names.image_reference(function.image)
    style = STYLES.get(function.lang)
    if style is None and function.lang != _WRAP:
        known = ", ".join(LANGS)
        raise function.fault(
            "unknown-lang",
            f"lang {function.lang!r}{meant(function.lang, LANGS)} cannot be a process here, which "
            f"can be {known}: take the embedded gateway with --backend docker, or another gateway",
        )
    template = templates / (_PLAIN if style else _WRAP)
    if not (template / "index.py").is_file():
        said = f"template {template.name} has no index.py in {template}"
        raise function.fault("template-missing", said)
    _check_handler(function, "handle" if style else "WRAP")
    files = [folder / "requirements.txt" for folder in (template, function.handler)]
    env: dict[str, str] = {"handler_style": style} if style else {}
    return CheckedBuild(reference, template, env, requirements.union(function.name, *files))


def _check_handler(function: FunctionSource, entry: str) -> None:
    """Raise ChironError unless its handler defines `entry` at its top level."""
    path = handler_file(function.handler)
    if not path.is_file():
        said = f"no handler.py in {function.handler}: create it with a {entry}"
        raise function.fault("handler-missing", said)
    try:
        module = syntax_tree(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", str(error))
        said = f"{path}:{line} is not valid Python: {reason}"
        raise function.fault("handler-syntax", said) from error
    if not {bound for bound, _ in bindings(module)} & {entry, "*"}:
        said = f"{path} defines no {entry} at its top level: add one"
        raise function.fault("handler-without-entry", said)


def _names(handler: Path, text: str) -> bool:
    files = filter(Path.is_file, handler.rglob("*.py"))
    return any(text.encode() in file.read_bytes() for file in files)


def compose(function: FunctionSource, lay_template: Callable[[Path], None], folder: Path) -> None:
    """Put the template and the handler together in the empty `folder`, as faas-cli does."""
    try:
        lay_template(folder)
        shutil.copytree(function.handler, folder / "function", ignore=_skipped)
    except OSError as error:
        raise _not_copied(function, error) from error
    # As in Docker's template, so that `from function import handler` finds a package.
    (folder / "function" / "__init__.py").touch()


def _not_copied(function: FunctionSource, error: OSError) -> ChironError:
    """Return the error with the first reason why a folder could not be copied."""
    reason = error.args[0][0][2] if isinstance(error, shutil.Error) else str(error)
    mend = ": free some space there" if f"[Errno {errno.ENOSPC}]" in reason else ""
    return function.fault("copy-failed", f"cannot copy {function.handler}: {reason}{mend}")


def _link(template: Path, store: ImageStore, folder: Path) -> None:
    """Like `lay_out`, but hard-link the store's copy for all images of the template."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # a file system without links
            shutil.copy2(source, target)

    def fill(kept: Path) -> None:
        lay_out(template, kept)
        for file in filter(Path.is_file, kept.rglob("*")):
            file.chmod(file.stat().st_mode & ~0o222)  # else a function could change every image

    with store.kept(template.name, _state(template), fill) as kept:
        shutil.copytree(kept, folder, copy_function=link, dirs_exist_ok=True)


def _state(template: Path) -> str:
    """Return a digest of the files that `lay_out` copies and of the Python that compiles them."""
    found = hashlib.sha256(str(sys.implementation.cache_tag).encode())
    runtime = template.parent / _WRAP
    for place in (template, runtime) if template.name == _PLAIN else (template,):
        for folder, below, files in os.walk(place):
            below[:] = sorted(set(below) - _skipped(folder, below))
            for file in sorted(files):
                status = Path(folder, file).stat()
                found.update(f"{folder}/{file} {status.st_mtime_ns} {status.st_size}\n".encode())
    return found.hexdigest()[:16]


def lay_out(template: Path, folder: Path) -> None:
    """Copy `template` to `folder`, without its placeholder of a handler.

    The copy is compiled: a function's own user could not store compiled files.

    Raises OSError or shutil.Error if a file cannot be read or written.
    """

    def skipped(source: str, entries: list[str]) -> set[str]:
        placeholder = {"function"} if Path(source) == template else set()
        return placeholder | _skipped(source, entries) - {"__pycache__"}

    runtime = template.parent / _WRAP / "wrap"
    shared = [runtime / part for part in _SHARED] if template.name == _PLAIN else []
    for compiled in (template, *([runtime] * bool(shared))):
        compileall.compile_dir(compiled, quiet=2)
    shutil.copytree(template, folder, ignore=skipped, dirs_exist_ok=True)
    for source in shared:
        to = folder / source.relative_to(runtime.parent)
        if source.is_dir():
            shutil.copytree(source, to, ignore=skipped)
            continue
        for file, copy in ((source, to), (_compiled(source), _compiled(to))):
            if file.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)


def _compiled(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(source)))


def build_in_docker(
    function: FunctionSource, templates: Path, arguments: Mapping[str, str] | None = None
) -> str:
    """Build `function` and tag it with its image reference; return the image's id.

    A function of a foreign lang is built as by faas-cli: from the user's own template, or from the
    Dockerfile in its handler folder (``lang: dockerfile``).

    Args:
        function: the function to build; a bad function is refused before the engine is called.
        templates: folder with one folder per template, each with a Dockerfile.
        arguments: build arguments of the template's Dockerfile, such as ``BASE_IMAGE``.

    Raises ChironError: as `build`, no usable engine, or a failed build.
    """
    if function.lang in (*STYLES, _WRAP):
        checked = check(function, templates)
        reference, given = checked.reference, checked.env | dict(arguments or {})
        stage: str | None = DOCKER_STAGE

        lay_template = partial(lay_out, checked.template)

        def fill(context: Path) -> None:
            compose(function, lay_template, context)
            # pip gets exactly the requirements that were checked.
            asked = "".join(f"{line}\n" for line in checked.requirements)
            (context / "function" / "requirements.txt").write_text(asked, encoding="utf-8")
    else:
        reference, given = names.image_reference(function.image), dict(arguments or {})
        stage, fill = None, partial(lay_out_as_faas_cli, function)
    with (
        tempfile.TemporaryDirectory(prefix="chiron-build-") as scratch,
        contextlib.closing(docker_engine.connect()) as client,
    ):
        context = Path(scratch) / "context"
        context.mkdir()
        fill(context)
        before = None
        with contextlib.suppress(ChironError):
            before = docker_engine.find_image(client, reference).id
        built = _build_in_engine(client, function, reference, context, given, stage)
        if before is not None:
            docker_engine.remove_superseded(client, before)
        return built


def lay_out_as_faas_cli(function: FunctionSource, context: Path) -> None:
    """Fill the empty folder `context` as ``faas-cli build`` does for foreign templates."""
    names.function_name(function.name)
    template, within = function.own_template, ""
    if function.lang.lower() != _DOCKERFILE:
        if template is None or not template.is_dir():
            said = f"no template {function.lang!r} beside stack.yaml: fetch it with faas-cli "
            raise function.fault("template-missing", f"{said}template store pull {function.lang}")
        settings = template / "template.yml"
        told = yaml.safe_load(settings.read_bytes()) if settings.is_file() else None
        within = (told or {}).get("handler_folder") or "function"
    try:
        if within and template is not None:
            shutil.copytree(template, context, ignore=_skipped, dirs_exist_ok=True)
        shutil.copytree(function.handler, context / within, ignore=_skipped, dirs_exist_ok=True)
    except OSError as error:
        raise _not_copied(function, error) from error
    if not (context / "Dockerfile").is_file():
        place = template if within else function.handler
        raise function.fault("dockerfile-missing", f"there is no Dockerfile in {place}")


def _skipped(_folder: str, entries: list[str]) -> set[str]:
    return {entry for entry in entries if _SKIPPED.fullmatch(entry)}


def _build_in_engine(
    client: Any,
    function: FunctionSource,
    tag: str,
    context: Path,
    arguments: dict[str, str],
    stage: str | None,
) -> str:
    import docker

    with engine_errors():
        try:
            image, _ = client.images.build(
                path=str(context),
                tag=tag,
                target=stage,
                buildargs=arguments,
                labels={docker_engine.BUILT_LABEL: function.name},
                rm=True,
                forcerm=True,
            )
        except docker.errors.BuildError as error:
            base = arguments.get("BASE_IMAGE", "the template's base image")
            # The last output of the failed step, and the engine's error.
            wrote = [one_line(entry.get("stream", "")) for entry in error.build_log]
            shown = [*[line for line in wrote if line][-_LINES_SHOWN:], one_line(error.msg)]
            said = f"Docker cannot build it on {base}: {' | '.join(shown)}"
            raise function.fault("build-failed", said) from error
    return str(image.id)
