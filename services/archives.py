"""Unpacks uploaded archives of workflow folders: only regular files and folders, within limits.

This module writes every member itself: no link, device, owner or mode of an archive reaches the
disk. The limits count the bytes that come out, not the declared sizes.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from chiron.workflow.errors import ChironError
from chiron.workflow.forms import WORKFLOW_FILE, workflow_file
from chiron.workflow.names import shown

#: The most unpacked bytes of an archive.
TOTAL_LIMIT = 256 * 1024 * 1024
#: The most files and folders of an archive, and their greatest depth.
MEMBER_LIMIT, DEPTH_LIMIT = 10_000, 32
#: The longest name of a member in characters, and the longest part of a name in bytes.
_NAME_LIMIT, _PART_LIMIT = 1024, 255
_CHUNK = 64 * 1024
#: The longest directory of a .zip, and the end of the file that has its size, in bytes.
_ZIP_DIRECTORY_LIMIT, _ZIP_TAIL = 4 * 1024 * 1024, 22 + 65535

#: A member: its name, and its content if it is a file.
Member = tuple[str, IO[bytes] | None]


def unpack(archive: IO[bytes], target: Path) -> Path:
    """Unpack a .tar.gz or .zip into the new folder `target`; return the workflow's folder in it.

    It is `target` itself, or the only folder at the archive's top.

    Raises ``bad-archive``, ``too-large`` (413), or ``missing-file`` without a workflow.json or
    .yaml.
    """
    target.mkdir(parents=True)
    budget = TOTAL_LIMIT
    made: set[PurePosixPath] = set()
    try:
        for count, (name, content) in enumerate(_members(archive), start=1):
            path = _safe(name)
            made.update((path, *path.parents))  # a name of ten parts makes nine folders
            if max(count, len(made)) > MEMBER_LIMIT:
                raise _too_large(_MEMBERS)
            budget -= _write(target / path, content, budget)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise _bad("has two members of one name") from None
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
        raise _bad(f"cannot be read: {error}") from None
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise _bad(f"is of a kind that is not supported: {error}") from None
    return _workflow_folder(target)


def _members(archive: IO[bytes]) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
    else:
        archive.seek(0)
        yield from _tar_members(archive)


def _zip_members(archive: IO[bytes]) -> Iterator[Member]:
    _check_zip_directory(archive)
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _bad(f"has a member that is no file and no folder: {shown(info.filename)}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _bad(f"has a member compressed in a rare way: {shown(info.filename)}")
            if info.is_dir():
                yield info.filename, None
            else:
                with opened.open(info) as content:
                    yield info.filename, content


def _check_zip_directory(archive: IO[bytes]) -> None:
    """Refuse a directory of members that is too long to read safely."""
    size = archive.seek(0, os.SEEK_END)
    archive.seek(max(0, size - _ZIP_TAIL))
    tail = archive.read()
    end = tail.rfind(b"PK\5\6")
    if end < 0 or len(tail) < end + 16:
        raise _bad("cannot be read: it has no end")
    if int.from_bytes(tail[end + 12 : end + 16], "little") > _ZIP_DIRECTORY_LIMIT:
        raise _too_large(_MEMBERS)
    archive.seek(0)


def _tar_members(archive: IO[bytes]) -> Iterator[Member]:
    with (
        gzip.open(archive) as unzipped,
        # Read as a stream: with seeks, a tar file could have the same bytes unzipped repeatedly.
        tarfile.open(fileobj=cast(IO[bytes], _Bounded(unzipped)), mode="r|") as opened,
    ):
        for info in opened:
            if info.isdir():
                yield info.name, None
            elif info.isreg():
                yield info.name, opened.extractfile(info)
            else:
                raise _bad(f"has a member that is no file and no folder: {shown(info.name)}")


class _Bounded:
    """A stream that raises ``too-large``: headers can be bombs as well as files."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = TOTAL_LIMIT

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, _CHUNK))
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(_UNPACKED)
        return data


def _safe(name: str) -> PurePosixPath:
    """Return the name of a member as a path, if it stays below the folder to unpack into."""
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name
    too_long = len(name) > _NAME_LIMIT or any(len(p.encode()) > _PART_LIMIT for p in path.parts)
    if outside or too_long or len(path.parts) > DEPTH_LIMIT or not name.isprintable():
        raise _bad(f"has a member with a name that cannot be used: {shown(name)}")
    return path


def _write(path: Path, content: IO[bytes] | None, budget: int) -> int:
    """Write one member; return its size, which is at most `budget` bytes."""
    if content is None:
        path.mkdir(parents=True, exist_ok=True)
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with path.open("xb") as file:
        while chunk := content.read(_CHUNK):
            size += len(chunk)
            if size > budget:
                raise _too_large(_UNPACKED)
            file.write(chunk)
    return size


def _workflow_folder(target: Path) -> Path:
    # macOS adds this folder to archives; it is not the user's.
    shutil.rmtree(target / "__MACOSX", ignore_errors=True)
    inner = [path for path in target.iterdir() if not path.name.startswith("._")]
    candidates = [target, *inner] if len(inner) == 1 else [target]
    found = next((path for path in candidates if workflow_file(path)), None)
    if found is None:
        message = f"the archive has no {WORKFLOW_FILE} at its top or in its only folder"
        raise ChironError("missing-file", message)
    return found


_MEMBERS = f"has more than {MEMBER_LIMIT} files and folders in it"
_UNPACKED = f"has more than {TOTAL_LIMIT // 1024**2} MiB in it"


def _too_large(what: str) -> ChironError:
    return ChironError("too-large", f"the archive {what}: send the workflow alone", status=413)


def _bad(what: str) -> ChironError:
    return ChironError("bad-archive", f"the archive {what}: send a .tar.gz or .zip of a folder")
