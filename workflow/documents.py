"""Artefacts on disk: read strict JSON as validated models; report errors in one line with path."""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from chiron.workflow.errors import ChironError
from chiron.workflow.names import shown


class Document(BaseModel):
    """Base of every artefact: immutable, without unknown fields, coercion of types or NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, validate_default=False
    )


Model = TypeVar("Model", bound=BaseModel)


#: The number of a document's faults to list; the others are counted.
_FAULTS = 12
#: The text of a fault, with its mend, by the type that the validator gives it.
_IN_WORDS = {
    "dict_type": 'a map of names to values belongs here: {"NAME": "value"}, in YAML NAME: value',
    "model_type": 'an object belongs here: {"FIELD": "value"}, in YAML FIELD: value',
    "tuple_type": 'a list belongs here: ["value"], in YAML - value',
}
#: Required free space for artefacts, in bytes.
_SPACE = 1 << 16
#: The deepest nesting and the most values of a document, and its maximum file size in bytes.
LEVELS, VALUES, FILE_LIMIT = 64, 5_000_000, 256 * 1024 * 1024


def parse_json(text: str | bytes, what: str) -> Any:
    """Return the value of strict JSON: no duplicate keys, no NaN or Infinity, within limits.

    Raises ``bad-json`` with line and column, ``duplicate-key`` with the key, or ``too-large``.
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
        reason = reason.partition("; use sys.")[0]  # Python's advice on long numbers
        raise ChironError("bad-json", f"{what} is not JSON: {reason}") from None
    check_size(value, what)
    if constants:
        raise ChironError(
            "bad-json",
            f"{what} has {constants[0]}, which is not JSON",
            path=dotted(_path_to_nan(value) or ()) or None,
        )
    return value


def _path_to_nan(value: Any) -> tuple[str | int, ...] | None:
    """Return the path of a document's first NaN; None if it has none."""
    if isinstance(value, float):
        return () if math.isnan(value) else None
    listed = value if isinstance(value, list) else []
    for key, item in value.items() if isinstance(value, dict) else enumerate(listed):
        path = _path_to_nan(item)
        if path is not None:
            return (key, *path)
    return None


def check_size(value: Any, what: str) -> None:
    """Refuse deeper nesting or more values than any real document has."""
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


def read_json(path: Path, what: str) -> Any:
    """Return the strict JSON in the file `path`, which has at most `FILE_LIMIT` bytes.

    Raises ``missing-file``, naming the expected content, ``too-large``, and the errors of
    `parse_json`.
    """
    return parse_json(read_file(path, f"{what} {path}", FILE_LIMIT), f"{what} {path}")


def read_file(path: Path, what: str, limit: int) -> bytes:
    """Return a file's content; raise ``missing-file``, or ``too-large`` above `limit` bytes."""
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
    """Return `value`, which came from JSON, as `model`; ``bad-document`` lists all faults."""
    try:
        # Strict models take JSON arrays as tuples in JSON mode only.
        return model.model_validate_json(json.dumps(value))
    except RecursionError:
        raise ChironError("bad-document", f"{what} is nested too deeply") from None
    except ValidationError as error:
        raise refusal(error, "bad-document", what) from None


def refusal(error: ValidationError, code: str, what: str) -> ChironError:
    """Return all faults of `what` as one error, each with its path."""
    faults = [
        (
            _IN_WORDS.get(fault["type"], fault["msg"].removeprefix("Value error, ")),
            dotted(fault["loc"]) or None,
        )
        for fault in error.errors(include_url=False, include_input=False)
    ]
    message, path = faults[0]
    if len(faults) > 1:
        listed = [f"{text} (at {place})" if place else text for text, place in faults[:_FAULTS]]
        left = [f"and {len(faults) - _FAULTS} more"] if len(faults) > _FAULTS else []
        message = f"{len(faults)} faults: {'; '.join([*listed, *left])}"
    return ChironError(code, f"{what}: {message}", path=path)


def read_document(model: type[Model], path: Path, what: str) -> Model:
    """Return the artefact of type `model` in the file `path`.

    Raises ``bad-document``; a file of another kind is told as such, without its many faults.
    """
    value = read_json(path, what)
    fields = model.model_fields
    if isinstance(value, dict) and (others := [key for key in value if key not in fields]):
        lacking = [key for key, field in fields.items() if field.is_required() and key not in value]
        if lacking and len(others) > len(value) // 2:
            has, lacks = ", ".join(map(shown, others[:4])), ", ".join(lacking[:4])
            message = (
                f"{what} {path}: it is another document, with {has} and without {lacks}: "
                f"name the file with the {what}"
            )
            raise ChironError("bad-document", message)
    return validate(model, value, f"{what} {path}")


def dump(document: BaseModel) -> str:
    """Return the artefact as JSON for the disk."""
    data = document.model_dump(mode="json", exclude_none=True)
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write `content` so that a reader sees the old file or the new file, never a partial file.

    A device, a pipe and a descriptor are written directly: a rename would replace them.
    """
    encoded = content.encode() if isinstance(content, str) else content
    with writing(path):
        if _is_stream(path):
            path.write_bytes(encoded)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encoded)
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _is_stream(path: Path) -> bool:
    """Return whether `path` is a device, a pipe, or a link to a descriptor such as /dev/stdout."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode):
        return str(path.readlink()).startswith("/proc/self/fd/")
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert OSErrors of the block to ``not-writable`` of `path`, whatever file it wrote."""
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}: name another place"
        raise ChironError("not-writable", message, status=500) from None


@contextmanager
def held(folder: Path, refusal: str = "") -> Iterator[None]:
    """Create `folder` and lock it for the duration of the block.

    Otherwise two commands that write there would each deploy parts of the other's files. A created
    folder is removed if nothing is written.

    Raises ``in-use``, whose message is `refusal`; ``not-writable``.
    """
    made = not folder.exists()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        message = f"another command writes to {folder}: wait for it, or name another folder by -o"
        raise ChironError("in-use", refusal or message, status=409) from None
    try:
        yield
    finally:
        with suppress(OSError):  # the folder is not empty
            if made:
                folder.rmdir()
        os.close(descriptor)


def require_writable(path: Path, *, folder: bool) -> None:
    """Raise ``not-writable`` if a file, or a `folder`, could not be created; create nothing."""
    place = path if folder else path.parent
    while not os.path.lexists(place):
        place = place.parent
    if _is_stream(path):
        return
    with writing(path), tempfile.TemporaryFile(dir=place, buffering=0) as file:
        file.write(bytes(_SPACE))


def dotted(location: Iterable[str | int]) -> str:
    """Return ``("wraps", 0, "cpus")`` as ``wraps[0].cpus``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
