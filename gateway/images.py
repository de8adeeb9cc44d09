"""The image store: each image is a folder of versions, with a link to the current version.

    <root>/<reference>/current -> <version>
    <root>/<reference>/<version>/{index.py, function/, image.json, ...}
    <root>/.kept/<template>/<state>/{index.py, ...}

The store replaces a reference's separators, as functions may use their folder's path anywhere: a
colon would end it in PYTHONPATH, and a percent sign would start an escape in file://.

The files of a template are in the store once: images have hard links to them.

A build adds a version and then switches the link with one rename. A gateway locks the versions that
it runs (shared), so a later build removes only unused versions. Each version of a wrap's code has
its own tag: of the unused tags, only the newest are kept.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from chiron.gateway import names
from chiron.workflow.errors import ChironError

_CURRENT = "current"
_METADATA = "image.json"
#: The subfolder with the files that images link to; no reference begins like this.
_KEPT = ".kept"
_SEPARATORS = str.maketrans("/:@", "+=,")
#: The newest tags of an image that are kept in any case: they may be deployed soon, or again.
_TAGS_KEPT = 5


def home() -> Path:
    """Return ``$CHIRON_HOME``, or the user's cache folder; for root, the system's.

    Functions that root's gateway runs as another user must read their images: in root's home they
    could not. Other users' folders are private, as they hold code.
    """
    configured = os.environ.get("CHIRON_HOME")
    if configured:
        return Path(configured)
    if os.geteuid() == 0:
        return Path("/var/cache/chiron")
    folder = Path.home() / ".cache" / "chiron"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # writing there fails later, with an error that has the fix
        return folder
    folder.chmod(0o700)
    return folder


def images_folder() -> Path:
    """Return the default folder of the image store."""
    return home() / "images"


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path` (created if need be), after waiting for its current holder.

    Other users cannot open the file, and so cannot hold the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(descriptor, "a") as file:  # noqa: PTH123  (a descriptor)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Image:
    """One version of an image: the folder to run and the interpreter to run it with."""

    name: str
    template: str
    python: Path
    env: dict[str, str]
    created: str
    folder: Path

    def write(self) -> None:
        metadata = {"format": 1, **asdict(self)}
        del metadata["folder"]
        text = json.dumps(metadata, indent=2, default=str) + "\n"
        (self.folder / _METADATA).write_text(text, encoding="utf-8")


class ImageStore:
    """The images below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def find(self, reference: str) -> Image | None:
        """Return the current version of an image, or None if it was never built."""
        folder = self._folder(reference)
        try:
            version = folder / (folder / _CURRENT).readlink()
            metadata = json.loads((version / _METADATA).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        del metadata["format"]
        metadata["python"] = Path(metadata["python"])
        return Image(**metadata, folder=version)

    def pin(self, reference: str) -> tuple[Image, int]:
        """Return the current version, kept until the descriptor is closed; ChironError if none."""
        while (image := self.find(reference)) is not None:
            try:
                descriptor = os.open(image.folder, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if (image.folder / _METADATA).exists():
                return image, descriptor
            # A build removed it between `find` and the lock: try again.
            os.close(descriptor)
        mend = "give its function a lang and build it with chiron build, or take --backend docker"
        message = f"image {reference} not found in {self.root}: {mend}"
        raise ChironError("image-missing", message)

    @contextmanager
    def new_version(self, reference: str) -> Iterator[Path]:
        """Yield an empty folder that becomes the image's current version if the block succeeds."""
        folder = self._folder(reference)
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder / ".lock"):
            version = folder / secrets.token_hex(8)
            version.mkdir()
            try:
                yield version
                link = folder / ".next"
                link.unlink(missing_ok=True)
                link.symlink_to(version.name)
                link.replace(folder / _CURRENT)
            finally:
                _remove_unused(folder, spared=_current(folder))

    @contextmanager
    def kept(self, name: str, state: str, fill: Callable[[Path], None]) -> Iterator[Path]:
        """Yield the folder `name` that `fill` has filled; another `state` replaces it.

        The folder stays until the block ends.
        """
        place = self.root / _KEPT / name
        place.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(place / ".lock"):
            folder = place / state
            if not folder.is_dir():
                for old in place.glob("[!.]*"):
                    shutil.rmtree(old)
                draft = place / "draft"
                fill(draft)
                draft.rename(folder)
            yield folder

    def remove_old_tags(self, reference: str) -> None:
        """Remove the unused tags of an image, except the newest."""
        name = _name(self._folder(reference))
        links = [link for link in self.root.glob(f"*/{_CURRENT}") if _name(link.parent) == name]
        links.sort(key=lambda link: link.lstat().st_mtime_ns)  # when it was built
        for link in links[:-_TAGS_KEPT]:
            with exclusive_lock(link.with_name(".lock")):
                _remove_unused(link.parent, spared=None)

    def _folder(self, reference: str) -> Path:
        return self.root / names.image_reference(reference).translate(_SEPARATORS)


def _name(folder: Path) -> str:
    """Return the name in an image's reference, without its tag."""
    return folder.name.rpartition("=")[0]


def _current(folder: Path) -> str | None:
    link = folder / _CURRENT
    return link.readlink().name if link.is_symlink() else None


def _remove_unused(folder: Path, spared: str | None) -> None:
    """Remove every unused version except `spared`; the caller holds the image's lock."""
    for version in folder.iterdir():
        if version.is_symlink() or not version.is_dir() or version.name == spared:
            continue
        descriptor = os.open(version, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(version)
        os.close(descriptor)
