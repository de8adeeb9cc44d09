"""The parsers that are fuzzed, and the modules that only hardening imports."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FUZZER = Path(__file__).with_name("fuzz_parsers.py")
sys.path.append(str(Path(__file__).with_name("soak")))  # its modules are no tests


@pytest.fixture(scope="session")
def fuzzer() -> ModuleType:
    """The module fuzz_parsers.py, which is a program of its own too."""
    spec = importlib.util.spec_from_file_location("fuzz_parsers", FUZZER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_parsers"] = module
    spec.loader.exec_module(module)
    return module
