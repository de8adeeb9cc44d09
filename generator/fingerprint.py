"""Fingerprints of code and settings: of a deployment's sources, and of a supporting function.

A redeployed function loses the state of its process, such as a store. So a function whose
fingerprint equals the running function's is not redeployed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from chiron.openfaas.handlers import OF_FAAS_CLI, SKIPPED, Extra, extra_of, own_template
from chiron.openfaas.objects import FunctionSpec, FunctionStatus
from chiron.openfaas.stack import StackFunction, environment

if TYPE_CHECKING:
    from chiron.generator.generate import Sources

DEFINITION = "chiron.definition"
_DIGITS = 8


def with_definition(
    function: StackFunction, code: Path | None, template: Path | None
) -> StackFunction:
    """Add an annotation to `function` with a digest of its definition, `code` and `template`."""
    digest = hashlib.sha256(function.model_dump_json().encode())
    if code is not None:
        for file in sorted(each for each in code.rglob("*") if each.is_file()):
            digest.update(f"\0{file.relative_to(code)}\0".encode() + file.read_bytes())
    if template is not None:
        digest.update("\0".join(_files(template)).encode())
    annotations = {**function.annotations, DEFINITION: digest.hexdigest()}
    return function.model_copy(update={"annotations": annotations})


def tagged(function: StackFunction, code: Path, template: Path) -> StackFunction:
    """Add a tag to the image of `function`: a digest of the folders that it is built from.

    A restarted replica then runs the code of its deployment, whatever was pushed since.
    """
    files = (*_files(code), *_of_template(template))
    tag = digest([json.dumps(function.build_args, sort_keys=True), *files])
    return function.model_copy(update={"image": f"{function.image}:{tag}"})


def unchanged(spec: FunctionSpec, running: Mapping[str, FunctionStatus]) -> bool:
    """Return whether a supporting function with this definition is among those `running`."""
    there = running.get(spec.service)
    definition = spec.annotations.get(DEFINITION)
    return bool(there and definition and there.annotations.get(DEFINITION) == definition)


def source_of(sources: Sources) -> str:
    """Return a short digest of the user's files, without files left by Python or tools."""
    triggers = chain.from_iterable(map(_files, sources.folder.trigger_files))
    return digest([sources.folder.text, *triggers, *_functions(sources)])


def digest_of(folder: Path) -> str:
    """Return a short digest of the code in `folder`."""
    return digest(_files(folder))


def digest(parts: Iterable[str]) -> str:
    """Return a short digest of `parts`, valid in the name of a function."""
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:_DIGITS]


def _functions(sources: Sources) -> Iterator[str]:
    for name, handler in sorted(sources.handlers.items()):
        variables = sorted(sources.variables([name])[name].items())
        function = sources.stack.functions[name]
        yield json.dumps([name, variables, function.model_dump(mode="json")])
        yield from _files(handler.folder)
        yield from _copied(handler.extra)
    for name in sources.called:
        function = sources.stack.functions.get(name, StackFunction())
        variables = sorted(environment(function, sources.folder.path).items())
        yield json.dumps([name, "called", variables, function.model_dump(mode="json")])
        if function.handler:
            yield from _files(sources.folder.path / function.handler)
            yield from _copied(extra_of(sources.stack, sources.folder.path))
        if template := own_template(function.lang, sources.folder.path):
            yield from _files(template)


def _copied(extra: Extra) -> Iterator[str]:
    for path, source in extra:
        yield path
        yield from _files(source)


def _files(place: Path) -> Iterator[str]:
    """Yield path and digest of the file `place`, or of the folder's files without tools' files."""
    for file in sorted(_kept(place)) if place.is_dir() else [place]:
        if file.is_file():
            yield f"{file.relative_to(place)} {hashlib.sha256(file.read_bytes()).hexdigest()}"


@functools.cache
def _of_template(template: Path) -> tuple[str, ...]:
    """Return `_files` of a template of ours, which does not change while a process runs."""
    return tuple(_files(template))


def _kept(place: Path) -> Iterator[Path]:
    for folder, below, files in os.walk(place):
        left = SKIPPED(folder, [*below, *files]) | (OF_FAAS_CLI if folder == str(place) else set())
        below[:] = [name for name in below if name not in left]
        yield from (Path(folder, name) for name in files if name not in left)
