"""Compiles the Java functions of a wrap, as its Dockerfile does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chiron.gateway.errors import GatewayError

_FUNCTIONS = "function/functions"


def compile_functions(function: str, folder: Path, say: Callable[[str], None]) -> None:
    """Compile the functions of the wrap `function`, whose image is in `folder`.

    Raises GatewayError: there is no JDK, or what javac says.
    """
    if not any(folder.glob(f"{_FUNCTIONS}/*/function/src/main/java")):
        return
    say(f"{function}: compiling its Java functions")
    command = [sys.executable, "-m", "wrap.functions.java_build", _FUNCTIONS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GatewayError("javac-failed", f"function {function}: {done.stderr.strip()}")
