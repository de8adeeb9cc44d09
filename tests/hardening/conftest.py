"""Fixtures: the parsers that are fuzzed, and tests that only a soak runs."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psutil
import pytest

FUZZER = Path(__file__).with_name("fuzz_parsers.py")
sys.path.append(str(Path(__file__).with_name("soak")))  # its modules are no tests


@pytest.fixture(scope="session")
def all_gone() -> Callable[[set[psutil.Process]], set[psutil.Process]]:
    """Waits for processes to end, be they reaped or not; returns those that did not."""

    def runs(process: psutil.Process) -> bool:
        try:
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def wait(processes: set[psutil.Process]) -> set[psutil.Process]:
        end = time.monotonic() + 60
        while left := {process for process in processes if runs(process)}:
            if time.monotonic() > end:
                return left
            time.sleep(0.1)
        return set()

    return wait


@pytest.fixture(scope="session")
def fuzzer() -> ModuleType:
    """The module fuzz_parsers.py, which is a program of its own too."""
    spec = importlib.util.spec_from_file_location("fuzz_parsers", FUZZER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_parsers"] = module
    spec.loader.exec_module(module)
    return module
