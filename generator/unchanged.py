"""Tells a supporting function that runs as it would be deployed from one that has changed.

A function that keeps something in its process, such as a store that it has started, loses that
when it is deployed again. So what it is made of is noted beside it, as an annotation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from openfaas.objects import FunctionSpec, FunctionStatus
from openfaas.stack import StackFunction

DEFINITION = "chiron.definition"


def with_definition(function: StackFunction, code: Path | None) -> StackFunction:
    """`function` with an annotation that changes with its definition, or with its folder `code`."""
    digest = hashlib.sha256(function.model_dump_json().encode())
    if code is not None:
        for file in sorted(each for each in code.rglob("*") if each.is_file()):
            digest.update(f"\0{file.relative_to(code)}\0".encode() + file.read_bytes())
    annotations = {**function.annotations, DEFINITION: digest.hexdigest()}
    return function.model_copy(update={"annotations": annotations})


def unchanged(spec: FunctionSpec, running: Mapping[str, FunctionStatus]) -> bool:
    """Whether a supporting function of just this definition is among those that are `running`."""
    there = running.get(spec.service)
    definition = spec.annotations.get(DEFINITION)
    return bool(there and definition and there.annotations.get(DEFINITION) == definition)
