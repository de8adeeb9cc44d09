"""Compiles Java handlers when an image is built (python -m wrap.functions.java_build FOLDER...).

Other handlers are compiled at their first use: beside their sources, or in a temporary folder if
that place is read-only.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

#: Parts of a handler folder that OpenFaaS's templates compile or put on the class path.
SOURCES, RESOURCES, JARS = "src/main/java", "src/main/resources", "lib*/*.jar"
#: Java sources of the templates' classes and of the worker.
_OURS = Path(__file__).with_name("java")
_CLASSES = ".chiron-classes"
_LINES_SHOWN = 3
_OPTIONS = ("-g", "-nowarn", "-Xlint:none")
#: Options of the compiler's own JVM, which ends before optimisation pays.
_BRIEF = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


@cache
def worker() -> Path:
    """Return the folder with the worker's classes. Raises ImportError."""
    return _compiled(_OURS, sorted(_OURS.glob("*.java")), ())


def class_path(folder: Path) -> list[Path]:
    """Return the class path of the handler in `folder`, its own classes first.

    Raises ImportError if there is no compiler, or with the compiler's errors.
    """
    jars = sorted(folder.glob(JARS))
    own = _compiled(folder, sorted((folder / SOURCES).rglob("*.java")), [worker(), *jars])
    return [own, *[each for each in [folder / RESOURCES] if each.is_dir()], *jars]


def _compiled(folder: Path, sources: Sequence[Path], libraries: Iterable[Path]) -> Path:
    """Compile `sources` below `folder`, once, and return the folder of their classes."""
    target = folder / _CLASSES
    if target.is_dir():
        return target
    compiler = shutil.which("javac")
    if compiler is None:
        said = "javac is not on the PATH: install openjdk-17-jdk-headless, or a newer JDK"
        raise ImportError(f"there is no Java compiler here: {said}")
    draft = Path(_draft(folder))
    command = [compiler, *_BRIEF, "-d", str(draft), "-encoding", "UTF-8", *_OPTIONS]
    path = ["-cp", os.pathsep.join(map(str, libraries))] if libraries else []
    files = [str(each.relative_to(folder)) for each in sources]
    done = subprocess.run(
        [*command, *path, *files], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(draft)
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise ImportError(f"javac: {' | '.join(lines[:_LINES_SHOWN])}")
    if draft.parent != folder:
        return draft
    draft.chmod(0o755)
    try:
        draft.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(draft)
    return target


def _draft(folder: Path) -> str:
    try:
        return tempfile.mkdtemp(dir=folder, prefix=_CLASSES)
    except OSError:
        made = tempfile.mkdtemp(prefix="chiron-java-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return made


def main(folders: Iterable[str]) -> None:
    """Compile the functions in each of `folders` that have sources in Java."""
    for folder in folders:
        for sources in sorted(Path(folder).resolve().glob(f"*/function/{SOURCES}")):
            place = sources.parents[2]
            try:
                class_path(place)
            except ImportError as error:
                sys.exit(f"the Java code of {place.parent.name} cannot be compiled: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
