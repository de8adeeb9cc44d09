"""Disk I/O: writes text to a temporary file, makes it durable, reads it back and removes it."""

import hashlib
import json
import os
import tempfile
import zlib

CHUNK = 64 * 1024


def write_and_read(chunk: bytes, chunks: int) -> tuple[int, int]:
    """Write `chunk` that many times, fsync, and return (bytes, CRC-32) of what is read back."""
    with tempfile.NamedTemporaryFile(prefix="disk-io-", buffering=0) as file:
        for _ in range(chunks):
            file.write(chunk)
        os.fsync(file.fileno())
        file.seek(0)
        length = checksum = 0
        while found := file.read(CHUNK):
            length += len(found)
            checksum = zlib.crc32(found, checksum)
    return length, checksum


def handle(req: str) -> str:
    """Move `sizes.disk-io.mib` MiB of text to the disk and back."""
    sizes = json.loads(req).get("sizes", {})
    mib = sizes.get("disk-io", {}).get("mib", 8)
    line = hashlib.sha256(req.encode()).hexdigest().encode()
    length, checksum = write_and_read(line * (CHUNK // len(line)), mib * 1024 * 1024 // CHUNK)
    return json.dumps(
        {"function": "disk-io", "bytes": length, "checksum": checksum, "sizes": sizes}
    )
