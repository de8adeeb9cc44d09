"""Compiles Java handlers: when an image is built (python -m wrap.functions.java_build FOLDER...).

What is not compiled then is compiled when it is first wanted, beside its sources or, if nothing can
be written there, in a temporary folder.
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

#: What OpenFaaS's templates compile of a handler folder, and what else is on the class path.
SOURCES, RESOURCES, JARS = "src/main/java", "src/main/resources", "lib*/*.jar"
#: The templates' classes and ours.
_OURS = Path(__file__).with_name("java")
_CLASSES = ".classes"
_LINES_SHOWN = 3
_OPTIONS = ("-g", "-nowarn", "-Xlint:none")
#: The compiler's own JVM, which ends before optimised code pays.
_BRIEF = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


@cache
def worker() -> Path:
    """The folder with the classes of the program that calls handlers. Raises ImportError."""
    return _compiled(_OURS, sorted(_OURS.glob("*.java")), ())


def class_path(folder: Path) -> list[Path]:
    """The class path of the handler in `folder`, its own classes first.

    Raises ImportError: there is no compiler, or what it has to say of the handler.
    """
    jars = sorted(folder.glob(JARS))
    own = _compiled(folder, sorted((folder / SOURCES).rglob("*.java")), [worker(), *jars])
    return [own, *[each for each in [folder / RESOURCES] if each.is_dir()], *jars]


def _compiled(folder: Path, sources: Sequence[Path], libraries: Iterable[Path]) -> Path:
    """The folder of the classes in `sources`, which are in `folder`."""
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
    except OSError:  # another process was sooner
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
