"""Runs a file as a module and supplies one module that the file imports."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def module_of(file: Path, name: str, given: ModuleType) -> ModuleType:
    """Import `file`, whose import of `name` finds `given`. Raises whatever the file raises."""
    sys.modules[name] = given
    spec = spec_from_file_location(f"_triggers_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be loaded")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
