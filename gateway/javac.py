"""Compiles the Java functions of a wrap, as its Dockerfile does."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chiron.gateway.errors import GatewayError

_FUNCTIONS = "function/functions"
#: The program of every wrap that calls Java functions, and its compiled classes.
_PROGRAM, _CLASSES = "wrap/functions/java", ".classes"


def compile_functions(function: str, folder: Path, cache: Path, say: Callable[[str], None]) -> None:
    """Compile the Java functions of the wrap in `folder`.

    `cache` keeps the program that calls them, compiled. GatewayError: no JDK, or javac's error.
    """
    if not any(folder.glob(f"{_FUNCTIONS}/*/function/src/main/java")):
        return
    say(f"{function}: compiling its Java functions")
    program = folder / _PROGRAM
    kept, classes = cache / _digest(program), program / _CLASSES
    if kept.is_dir():
        shutil.copytree(kept, classes)
    command = [sys.executable, "-m", "wrap.functions.java_build", _FUNCTIONS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GatewayError("javac-failed", f"function {function}: {done.stderr.strip()}")
    if not kept.is_dir():
        draft = cache / f"{kept.name}-{os.getpid()}"
        shutil.copytree(classes, draft)
        with suppress(OSError):  # another build was sooner
            draft.rename(kept)
        shutil.rmtree(draft, ignore_errors=True)


def _digest(folder: Path) -> str:
    """Return a digest of the sources in `folder` and of the compiler's path."""
    found = hashlib.sha256((os.path.realpath(shutil.which("javac") or "")).encode())
    for source in sorted(folder.glob("*.java")):
        found.update(source.read_bytes())
    return found.hexdigest()
