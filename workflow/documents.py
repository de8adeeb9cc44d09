"""Artefacts on disk: strict JSON in, validated models out, one-line errors with the path."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from workflow.errors import ChironError
from workflow.names import shown


class Document(BaseModel):
    """Base of every artefact: unknown fields refused, no coercion of types, no NaN, immutable."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, validate_default=False
    )


Model = TypeVar("Model", bound=BaseModel)


def parse_json(text: str | bytes, what: str) -> Any:
    """The value of strict JSON: no duplicate keys, no NaN or Infinity.

    Raises
    ------
    ChironError
        ``bad-json`` with line and column, or ``duplicate-key`` with the key.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise ChironError(
                    "duplicate-key",
                    f"{what} has the key {shown(key)} twice in one object",
                    path=key,
                )
            result[key] = value
        return result

    def refuse(constant: str) -> Any:
        raise ChironError("bad-json", f"{what} has {constant}, which is not JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise ChironError("bad-json", f"{what} is not JSON: {reason}") from None


def read_json(path: Path, what: str) -> Any:
    """The strict JSON in the file `path`; ``missing-file`` names what the file would have been."""
    try:
        return parse_json(path.read_bytes(), f"{what} {path}")
    except OSError as error:
        raise ChironError(
            "missing-file", f"{what} {path} cannot be read: {error.strerror}"
        ) from None


def validate(model: type[Model], value: Any, what: str) -> Model:
    """`value`, which came from JSON, as `model`; ``bad-document`` names the first fault's path."""
    try:
        # Strict models take JSON arrays as tuples in JSON mode only.
        return model.model_validate_json(json.dumps(value))
    except RecursionError:
        raise ChironError("bad-document", f"{what} is nested too deeply") from None
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        message = fault["msg"].removeprefix("Value error, ")
        raise ChironError(
            "bad-document", f"{what}: {message}", path=dotted(fault["loc"]) or None
        ) from None


def read_document(model: type[Model], path: Path, what: str) -> Model:
    """The artefact of type `model` in the file `path`."""
    return validate(model, read_json(path, what), f"{what} {path}")


def dump(document: BaseModel) -> str:
    """The artefact as the JSON that is written to disk."""
    data = document.model_dump(mode="json", exclude_none=True)
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Write `text` so that a reader sees the old file or the new one, never a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def dotted(location: Iterable[str | int]) -> str:
    """``("wraps", 0, "cpus")`` as ``wraps[0].cpus``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
