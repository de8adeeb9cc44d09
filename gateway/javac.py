"""Compiles the Java functions of a wrap, as its Dockerfile does."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chiron.workflow.errors import ChironError

_FUNCTIONS, _SOURCES = "function/functions", "src/main/java"
#: The program of every wrap that calls Java functions, and compiled classes.
_PROGRAM, _CLASSES = "wrap/functions/java", ".chiron-classes"
#: What classes depend on: sources of the program and of functions, and libraries.
_READ = ("*.java", f"{_SOURCES}/**/*.java", "lib*/*.jar")


def compile_functions(function: str, folder: Path, cache: Path, say: Callable[[str], None]) -> None:
    """Compile the Java functions of the wrap in `folder`.

    `cache` keeps the classes of equal sources. Raises ChironError: no JDK, or javac's error.
    """
    places = sorted(folder.glob(f"{_FUNCTIONS}/*/function/{_SOURCES}"))
    if not places:
        return
    program = folder / _PROGRAM
    compiler = os.path.realpath(shutil.which("javac") or "").encode()
    of_program = _digest(program, compiler)
    kept = {program: cache / of_program}
    for each in (place.parents[2] for place in places):
        kept[each] = cache / _digest(each, of_program.encode())
    for place in kept:  # what came with a handler folder may be of other sources
        shutil.rmtree(place / _CLASSES, ignore_errors=True)
    missing = {place: each for place, each in kept.items() if not each.is_dir()}
    for place in kept.keys() - missing.keys():
        shutil.copytree(kept[place], place / _CLASSES)
    if not missing:
        return
    say(f"{function}: compiling its Java functions")
    command = [sys.executable, "-m", "wrap.functions.java_build", _FUNCTIONS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChironError("javac-failed", f"function {function}: {done.stderr.strip()}")
    for place, each in missing.items():
        _keep(place / _CLASSES, each)


def _keep(classes: Path, kept: Path) -> None:
    draft = kept.with_name(f"{kept.name}-{os.getpid()}-{threading.get_ident()}")
    shutil.copytree(classes, draft)
    with suppress(OSError):  # another build was sooner
        draft.rename(kept)
    shutil.rmtree(draft, ignore_errors=True)


def _digest(folder: Path, known: bytes) -> str:
    """Return a digest of `known` and of what the classes in `folder` are made from."""
    found = hashlib.sha256(known)
    for file in sorted(each for pattern in _READ for each in folder.glob(pattern)):
        content = file.read_bytes()
        found.update(f"\0{file.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return found.hexdigest()
