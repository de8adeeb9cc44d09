"""The core is rules alone: what it imports can wait for nothing and touch nothing."""

from __future__ import annotations

import ast
import doctest
import importlib
from pathlib import Path

from tests.rows import each_row

CORE = Path(__file__).parents[2] / "templates" / "python3-wrap" / "wrap" / "core"
#: What waits, or touches what is outside the process.
_IMPURE = (
    "_thread asyncio concurrent ctypes fcntl http importlib io mmap multiprocessing os queue random"
    " secrets select selectors shutil signal socket ssl subprocess tempfile threading time urllib"
)
MODULES = sorted(CORE.rglob("*.py"))


@each_row("module", MODULES, ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_imports_no_clock_chance_thread_socket_or_file_and_nothing_else_of_the_wrap(
    module: Path,
) -> None:
    imported = set[str]()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(str(node.module))
    assert not {name.partition(".")[0] for name in imported} & set(_IMPURE.split())
    ours = [name for name in imported if name.partition(".")[0] == "wrap"]
    assert all(name.startswith("wrap.core") for name in ours)


@each_row("module", MODULES, ids=lambda path: str(path.relative_to(CORE)))
def test_the_examples_in_the_core_are_true(module: Path) -> None:
    parts = module.relative_to(CORE.parent.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    assert doctest.testmod(importlib.import_module(name)).failed == 0
