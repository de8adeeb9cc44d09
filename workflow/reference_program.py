"""A handler of another language in the reference run: each call has a process of its own.

The program gets the handler's folder, its style and a descriptor as its last arguments, and the
body of the request on stdin. To the descriptor it writes JSON: ``status`` and ``body`` (base64), or
``error``, ``message`` and ``frames``, the innermost last.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.errors import StatesError, cause_of


class Answer(NamedTuple):
    """The status and the body that a handler answers with."""

    status: int
    body: bytes


def called(
    program: Sequence[str], folder: str, environment: Mapping[str, str], body: bytes
) -> Answer:
    """What the handler in `folder` answers to `body`; raises StatesError, or ``no-program``."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as answers:
        with os.fdopen(theirs, "wb") as end:
            try:
                process = subprocess.Popen(
                    [*program, str(end.fileno())],
                    cwd=Path(folder).parent,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=sys.stderr,
                    pass_fds=[end.fileno()],
                )
            except FileNotFoundError:
                message = f"{program[0]} is not on the PATH: install it"
                raise ChironError("no-program", message) from None
        with process, process.stdin or contextlib.nullcontext() as given:
            if given is not None:
                with contextlib.suppress(BrokenPipeError):
                    given.write(body)
                    given.close()
            said = answers.read()
    if not said:
        how = f"{program[0]} ended with {process.returncode}"
        raise StatesError("exited", cause_of("exited", how))
    found = json.loads(said)
    if "error" in found:
        cause = cause_of(found["error"], found["message"], found["frames"])
        raise StatesError(found["error"], cause)
    return Answer(found["status"], b64decode(found["body"]))
