"""Calls in a function's code that concern its whole process, and so all that share it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_NAMES = {
    "os": (
        "_exit abort chdir chroot fchdir fork forkpty nice posix_spawn posix_spawnp setegid "
        "seteuid setgid setpgid setpriority setsid setuid umask "
        "execl execle execlp execv execve execvp execvpe"
    ),
    "signal": "alarm pthread_sigmask set_wakeup_fd setitimer signal",
    "sys": "setprofile setrecursionlimit setswitchinterval settrace",
    "socket": "setdefaulttimeout",
    "locale": "setlocale",
    "resource": "setrlimit",
    "time": "tzset",
}
#: Functions of the standard library that change or end the process which calls them.
CALLS = frozenset(f"{module}.{name}" for module, names in _NAMES.items() for name in names.split())
#: Modules whose import is enough: they start processes from one that runs threads.
MODULES = frozenset({"multiprocessing"})


def unshareable(folder: Path) -> tuple[str, ...]:
    """Those of the Python files in a handler folder, as ``module.name``, sorted.

    Names are followed through imports and their aliases, not through other assignments. A file
    that is no Python has none.
    """
    found: set[str] = set()
    for file in sorted(folder.rglob("*.py")):
        try:
            found.update(_in(ast.parse(file.read_bytes())))
        except (SyntaxError, ValueError, RecursionError):
            continue
    return tuple(sorted(found))


def _in(tree: ast.Module) -> Iterator[str]:
    names = _imported(tree)
    yield from MODULES & {name.partition(".")[0] for name in names.values()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            whole = f"{names.get(node.value.id)}.{node.attr}"
        elif isinstance(node, ast.Name):
            whole = names.get(node.id, "")
        else:
            continue
        if whole in CALLS:
            yield whole


def _imported(tree: ast.Module) -> dict[str, str]:
    """What names in the file stand for: ``o`` for ``os``, ``leave`` for ``os._exit``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names
