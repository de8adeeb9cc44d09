"""Reads and writes an S3-compatible store for the Maps of a state machine.

The request is ``{"Action": ..., "Parameters": {...}}``, which `chiron.workflow.asl_resources` makes
of an ItemReader or a ResultWriter.
"""

import gzip
import io
import json
import os
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from minio import Minio

#: The store: s3://KEY@HOST[:PORT]/BUCKET, with TLS s3s. Maps name the buckets.
_STORE = "chiron_s3"
#: The secret with the password of KEY, and the variable that replaces it without a gateway.
_SECRET, _PASSWORD = "chiron-store", "CHIRON_STORE_PASSWORD"
#: Memory for reading an object, as a multiple of its size: bytes, text, and a parsed part.
_COPIES = 3
#: The first bytes of a gzip file, and the size of a part to unpack, in bytes.
_GZIP, _PART = b"\x1f\x8b", 1 << 20


def handle(event, context):
    """Perform the action of an ItemReader or a ResultWriter; return the content that is read."""
    asked = json.loads(event.body)
    return _ACTIONS[asked["Action"]](asked["Parameters"])


def _get(parameters):
    bucket, key = _text(parameters, "Bucket"), _text(parameters, "Key")
    version = _text(parameters, "VersionId", "") or None
    answer = _client().get_object(bucket_name=bucket, object_name=key, version_id=version)
    name, held = f"s3://{bucket}/{key}", parameters.get("Held", 0)
    try:
        _check_size(name, int(answer.headers.get("Content-Length", 0)), held)
        body = answer.read()
    finally:
        answer.close()
        answer.release_conn()
    if body.startswith(_GZIP):
        body = _unpacked(name, body, held)
    try:
        return str(body, "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name} is no text in UTF-8, nor one that gzip has compressed") from None


def _unpacked(name, body, held):
    with gzip.open(io.BytesIO(body)) as file:
        parts, size = [], 0
        while part := file.read(_PART):
            parts.append(part)
            size += len(part)
            _check_size(name, size, held)
    return b"".join(parts)


def _check_size(name, size, held):
    """Raise ValueError if a file would exceed the memory of the wrap.

    `held` is the size of the files that the Map has read before.
    """
    most_mib = int(os.environ.get("WRAP_MEMORY_MIB") or 0)
    if most_mib and held + size * _COPIES > most_mib << 20:
        before = f" beside {held >> 20} MiB of files before" if held else ""
        raise ValueError(
            f"{name} has {size >> 20} MiB, which take {_COPIES} times as much of the "
            f"{most_mib} MiB of the wrap{before}: split the object, or raise limits.memory of a "
            "function"
        )


def _list(parameters):
    bucket, prefix = _text(parameters, "Bucket"), _text(parameters, "Prefix", "")
    found = _client().list_objects(bucket_name=bucket, prefix=prefix, recursive=True)
    return f"[{','.join(json.dumps(_metadata(each)) for each in found)}]"


def _metadata(found):
    """Return the metadata of an object, as an item of a Map."""
    return {
        "Etag": f'"{found.etag}"',
        "Key": found.object_name,
        "LastModified": int(found.last_modified.timestamp()),
        "Size": found.size,
        "StorageClass": found.storage_class or "STANDARD",
    }


def _put(parameters):
    body = _text(parameters, "Body").encode()
    _client().put_object(
        bucket_name=_text(parameters, "Bucket"),
        object_name=_text(parameters, "Key"),
        data=io.BytesIO(body),
        length=len(body),
        content_type="application/json",
    )
    return ""


def _text(parameters, name, default=None):
    value = parameters.get(name, default) if isinstance(parameters, dict) else None
    if not isinstance(value, str):
        raise ValueError(f"{name} has to be a string: it says where the object is")
    return value


@cache
def _client():
    url = urlsplit(os.environ[_STORE])
    file = Path(os.environ.get("secrets_dir") or "/var/openfaas/secrets") / _SECRET  # noqa: SIM112
    password = file.read_text().strip() if file.is_file() else os.environ.get(_PASSWORD)
    return Minio(
        endpoint=url.netloc.rpartition("@")[2],
        access_key=url.username,
        secret_key=password,
        secure=url.scheme == "s3s",
    )


_ACTIONS = {"s3:getObject": _get, "s3:listObjectsV2": _list, "s3:putObject": _put}
