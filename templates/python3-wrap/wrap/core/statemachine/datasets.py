"""The items of several files that a manifest or a listing of objects names.

References
----------
AWS Step Functions Developer Guide, "ItemReader (Map)": "Processing nested data sets" and "Examples
of datasets".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .errors import StatesError
from .readers import FAILED, Lazy, items_in
from .values import parse

#: Values of ManifestType; the InputType MANIFEST means `INVENTORY`.
INVENTORY, ATHENA = "S3_INVENTORY", "ATHENA_DATA"
#: The Transformation that reads each object of a listing.
LOADED = "LOAD_AND_FLATTEN"
#: The bucket and the key of a file.
Place = tuple[str, str]


def names_files(config: Mapping[str, Any]) -> bool:
    """Whether a ReaderConfig reads a manifest, or the objects of a listing."""
    return "ManifestType" in config or "Transformation" in config


class Dataset(Lazy):
    """The items of all files, in order; every file is read before the first item is used.

    Args:
        bucket: the bucket of a listing's objects.
    """

    def __init__(self, config: Mapping[str, Any], bucket: str) -> None:
        self._config = config
        self._bucket = bucket
        self._places: Iterator[Place] | None = None
        self._files: list[tuple[Sequence[Any], str]] = []
        #: The index of each file's first item, and the number of all items.
        self._starts: list[int] = []
        self._length = 0
        #: The characters read so far.
        self.size = 0
        #: The next file to read; None after the last.
        self.place: Place | None = None

    def read(self, text: str, most: int | None) -> None:
        """Add the text of the manifest or listing, then the text of each file at `place`.

        Args:
            most: the number of items to read; None means all.

        Raises StatesError, ``States.ItemReaderFailed``.
        """
        if self.place is None:
            self._config, places = _named(text, self._config, self._bucket)
            self._places = iter(places)
        else:
            items = items_in(text, self._config, most and most - self._length)
            self._files.append((items, f"S3://{'/'.join(self.place)}"))
            self._starts.append(self._length)
            self._length += len(items)
            self.size += len(text)
        is_full = most is not None and self._length >= most
        self.place = None if is_full or self._places is None else next(self._places, None)

    def origin(self, index: int) -> str:
        """Return ``$$.Map.Item.Source`` of an item: its file."""
        return self._files[bisect_right(self._starts, index) - 1][1]

    def __len__(self) -> int:
        return self._length

    def made(self, index: int) -> Any:
        number = bisect_right(self._starts, index) - 1
        return self._files[number][0][index - self._starts[number]]


def _named(
    text: str, config: Mapping[str, Any], bucket: str
) -> tuple[Mapping[str, Any], Iterable[Place]]:
    """Return the ReaderConfig of the files that `text` names, and the files. Raises StatesError."""
    if config.get("ManifestType") == INVENTORY:
        return _of_inventory(text, config)
    if config.get("ManifestType") == ATHENA:
        rows = items_in(text, {"InputType": "CSV", "CSVHeaders": ["uri"]}, None)
        return config, (_of_uri(row["uri"]) for row in rows)
    return config, (_of_object(each, bucket) for each in items_in(text, {}, None))


def _of_inventory(
    text: str, config: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Iterable[Place]]:
    try:
        manifest = parse(text)
    except StatesError as error:
        raise StatesError(FAILED, f"the manifest: {error.cause}") from None
    match manifest:
        case {
            "fileFormat": "CSV",
            "fileSchema": str(schema),
            "destinationBucket": str(arn),
            "files": list(files),
        }:
            headers = [name.strip() for name in schema.split(",")]
            bucket = arn.rpartition(":")[2]
            config = {"InputType": "CSV", "CSVHeaders": headers, **config}
            return config, (_of_object(each, bucket, "key") for each in files)
    needs = "fileFormat CSV, fileSchema, destinationBucket and files"
    raise StatesError(FAILED, f"the file is no manifest of an S3 inventory, which has {needs}")


def _of_uri(uri: str) -> Place:
    scheme, _, place = uri.strip().partition("://")
    bucket, _, key = place.partition("/")
    if scheme.lower() != "s3" or not key:
        raise StatesError(FAILED, f"the manifest has {uri!a}, which is no s3://BUCKET/KEY")
    return bucket, key


def _of_object(entry: Any, bucket: str, name: str = "Key") -> Place:
    key = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(key, str) or not bucket:
        raise StatesError(FAILED, "a file is to be read that has no Bucket or no Key")
    return bucket, key
