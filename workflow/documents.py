"""Artefacts on disk: strict JSON in, validated models out, one-line errors with the path."""

from __future__ import annotations

import json
import math
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


#: Deepest nesting and most values of a document, and its largest file in bytes.
LEVELS, VALUES, FILE_LIMIT = 64, 5_000_000, 256 * 1024 * 1024


def parse_json(text: str | bytes, what: str) -> Any:
    """The value of strict JSON: no duplicate keys, no NaN or Infinity, within limits.

    Raises
    ------
    ChironError
        ``bad-json`` with line and column, ``duplicate-key`` with the key, or ``too-large``.
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

    constants: list[str] = []

    def keep(constant: str) -> float:
        constants.append(constant)
        return math.nan

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=keep)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise ChironError("bad-json", f"{what} is not JSON: {reason}") from None
    _check_size(value, what)
    if constants:
        raise ChironError(
            "bad-json",
            f"{what} has {constants[0]}, which is not JSON",
            path=dotted(_path_to_nan(value) or ()) or None,
        )
    return value


def _path_to_nan(value: Any) -> tuple[str | int, ...] | None:
    """Where the first NaN of a document stands; None where it has none."""
    if isinstance(value, float):
        return () if math.isnan(value) else None
    items = value.items() if isinstance(value, dict) else enumerate(_listed(value))
    for key, item in items:
        path = _path_to_nan(item)
        if path is not None:
            return (key, *path)
    return None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _check_size(value: Any, what: str) -> None:
    """Refuse what is nested deeper, or has more values, than any document that is meant."""
    level, depth, values = [value], 0, 0
    while level:
        depth += 1
        values += len(level)
        if depth > LEVELS:
            raise ChironError("bad-json", f"{what} is nested too deeply: {LEVELS} levels at most")
        if values > VALUES:
            raise ChironError("too-large", f"{what} has more than {VALUES} values", status=413)
        holders = [found for found in level if isinstance(found, dict | list)]
        level = [
            v for found in holders for v in (found.values() if isinstance(found, dict) else found)
        ]


def read_json(path: Path, what: str, limit: int = FILE_LIMIT) -> Any:
    """The strict JSON in the file `path`, which has at most `limit` bytes.

    Raises
    ------
    ChironError
        ``missing-file`` names what the file would have been; ``too-large``; and `parse_json`'s.
    """
    return parse_json(read_file(path, f"{what} {path}", limit), f"{what} {path}")


def read_file(path: Path, what: str, limit: int) -> bytes:
    """The content of a file, called `what`; ``missing-file``, ``too-large`` above `limit` bytes."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise ChironError("missing-file", f"{what} cannot be read: {reason}") from None
    if len(content) > limit:
        raise ChironError("too-large", f"{what} has more than {limit} bytes", status=413)
    return content


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
