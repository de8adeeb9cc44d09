"""Whether functions can be traced here, asked before anything is deployed or run."""

from __future__ import annotations

from collections.abc import Mapping

from installation.packages import os_release
from installation.tracing import check_strace, check_tracing
from workflow.errors import ChironError


def require_tracing(variables: Mapping[str, str]) -> str:
    """The path of strace, once it has been seen to work.

    Parameters
    ----------
    variables
        Usually ``os.environ``; strace is looked for on its PATH.

    Raises
    ------
    ChironError
        ``no-strace`` or ``no-ptrace``, with the line that mends it on this machine.
    """
    search_path = variables.get("PATH", "")
    strace = check_strace(search_path, os_release())
    if not strace.ok:
        message = f"profiling needs strace, which is {strace.detail}: {strace.fix}"
        raise ChironError("no-strace", message)
    tracing = check_tracing(search_path)
    if not tracing.ok:
        message = f"profiling needs to trace processes ({tracing.detail}): {tracing.fix}"
        raise ChironError("no-ptrace", message)
    return strace.detail
