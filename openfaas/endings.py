"""Why a function ended, according to its gateway, itself or its log; and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from chiron.openfaas.objects import LogLine
from chiron.workflow.errors import ChironError

#: The message of the embedded gateway and the wraps after a kill at the memory limit.
_ABOVE_LIMIT = re.compile(r"above (?:its|the) memory limit of (\d+) MiB")
_USED = re.compile(r"it used (\d+) MiB")
#: Log lines of of-watchdog and container runtimes for a SIGKILL; OpenFaaS reports no cause.
_KILLED = re.compile(r"signal: killed|exit (?:code|status) 137|OOMKilled")
#: The last line of a traceback of an import that always fails; and further errors, which count
#: only if the import ended its program.
_FAILED = re.compile(r"(?:ModuleNotFound|Import|Syntax|Indentation)Error: .+")
_ENDED = re.compile(rf"{_FAILED.pattern}|(?:Attribute|FileNotFound|Key|Name|Type)Error: .+")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
#: The prefix of the embedded gateway's own lines in a function's log, which repeat its answers.
_GATEWAYS_OWN = "gateway: "
#: Log lines to read, log lines to show, and characters to show.
TAIL = 20
_LINES, _WORDS = 5, 600
#: Suggested memory limits are multiples of this, in MiB.
_STEP_MIB = 64
#: The most functions of a wrap to name.
_NAMED = 8

#: OpenFaaS's folder of secrets.
_SECRETS = "/var/openfaas/secrets"


def by_memory(text: str) -> bool:
    return _ABOVE_LIMIT.search(text) is not None


def maybe_by_memory(log: Sequence[LogLine]) -> bool:
    """Return whether a log ends with the memory limit, or SIGKILL, which it usually causes."""
    return any(by_memory(line.text) or _KILLED.search(line.text) for line in log[-_LINES:])


def memory_note(
    error: ChironError,
    function: str,
    holds: Sequence[str],
    log: Sequence[LogLine],
    limit_mib: int = 0,
) -> str | None:
    """Return the fix for an end by memory that `error` reports; None if nothing suggests one.

    `holds` are the functions of stack.yaml in the deployed `function`. `log` is its log, and
    `limit_mib` its memory limit in MiB, if known. A larger limit in `error` is the machine's.
    """
    mend = partial(_more_memory, function, holds, error.functions)
    said = _ABOVE_LIMIT.search(error.message)
    if said:
        above_mib = int(said[1])
        if limit_mib and above_mib > limit_mib:
            return f"that is all that this machine or container has: run less beside {function}"
        used = _USED.search(error.message)
        return mend(max(2 * above_mib, int(used[1]) if used else 0))
    lines = [line.text.strip() for line in log[-_LINES:] if _KILLED.search(line.text)]
    if not lines:
        return None
    limit = f" of {limit_mib} MiB" if limit_mib else ""
    cause = f"its log has {lines[-1]!a}, which may be its memory limit{limit}"
    return f"{cause}: {mend(2 * limit_mib)}"


def _more_memory(
    function: str, holds: Sequence[str], blamed: Sequence[str], wanted_mib: int
) -> str:
    names = ", ".join(holds[:_NAMED]) + (", ..." if len(holds) > _NAMED else "")
    content = f"{function} runs {names}: " if list(holds) != [function] else ""
    concerned = [name for name in holds if name in blamed] or list(holds)
    given = concerned[0] if len(concerned) == 1 else "one of them"
    mend = f"{content}give {given} more memory in stack.yaml"
    mib = -(-wanted_mib // _STEP_MIB) * _STEP_MIB
    return f"{mend}, such as limits: {{memory: {mib}Mi}}" if mib else f"{mend} (limits: memory)"


class FailedImports:
    """Detects in a function's log that it restarts repeatedly because an import fails.

    The log may hold failures of the previous version: only those after the first look count.
    """

    def __init__(self) -> None:
        self._before: Sequence[LogLine] | None = None

    def last(self, log: Sequence[LogLine], *, ended: bool = False) -> str | None:
        """Return the last import failure since the first look; None if there is none.

        Set `ended` if the program has ended, so that no other code can have written to the log.
        """
        failed = _ENDED if ended else _FAILED
        if self._before is None:
            self._before = log
        found = [line.text for line in log if failed.match(line.text) and line not in self._before]
        return found[-1] if found else None


def secret_mend(said: str) -> str:
    """Return the fix for the error `said` of a function that finds no secret; empty for others."""
    where = "outside a container read the folder in secrets_dir instead"
    return f"name the secret in stack.yaml; {where}" if _SECRETS in said else ""


def import_failed(function: str, said: str, log: Sequence[LogLine]) -> ChironError:
    """Return the error of a function whose import fails with the message `said`."""
    lacking = _NO_MODULE.match(said)
    if lacking is None:
        where = "" if _FAILED.match(said) else f"; {last_words(log)}"
        mend = f"; {mend}" if (mend := secret_mend(said)) else ""
        message = f"function {function} cannot be imported: {said}{mend}{where}"
        return ChironError("import-failed", message, functions=(function,))
    module = lacking[1]
    message = (
        f"function {function} imports {module}, which is not installed: add the package that has "
        f"{module} to the function's requirements.txt"
    )
    return ChironError("missing-package", message, functions=(function,))


def last_words(log: Sequence[LogLine]) -> str | None:
    """Return the end of a function's log in one line; None if it has none."""
    lines = [line.text.strip() for line in log if line.text.strip()]
    its_own = [line for line in lines if not line.startswith(_GATEWAYS_OWN)]
    shown = list(dict.fromkeys(its_own or lines))[-_LINES:]  # a restart repeats its lines
    return f"its log ends: {' | '.join(shown)[-_WORDS:]}" if shown else None
