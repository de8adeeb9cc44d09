"""What library functions change in the objects that they look at is found, but for caches."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter

import pytest
from wrap.functions import named

LIBRARY = """
class Config:
    mode = "usual"

class Logger:
    def __init__(self):
        self._core = Config()

    def add(self, handler):
        self._core.mode = handler

CONFIG, CACHE, ORDER, logger = Config(), {}, [], Logger()

def configure(mode):
    CONFIG.mode = mode

def register(name):
    ORDER.append(name)

def define(name):
    CACHE[name] = 1

def cached(name):
    return CACHE.setdefault(name, 1)

def lazily(_):
    CONFIG.made = CONFIG.made if hasattr(CONFIG, "made") else 1
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("configure", {"library_of_shop.CONFIG.mode"}),
        ("register", {"library_of_shop.ORDER"}),
        ("logger.add", {"library_of_shop.logger._core.mode"}),
        ("define", {"library_of_shop.CACHE"}),
        ("cached", set()),
        ("lazily", set()),
    ],
)
def test_what_a_function_of_a_library_changes_is_found(call, found, tmp_path, monkeypatch):
    (tmp_path / "library_of_shop.py").write_text(LIBRARY)
    folder = tmp_path / "function"
    folder.mkdir()
    (folder / "handler.py").write_text(f"import library_of_shop\nlibrary_of_shop.{call}(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "library_of_shop", raising=False)
    library = importlib.import_module("library_of_shop")
    before = named.held(folder)
    attrgetter(call)(library)("own")
    assert set(named.changed(before, named.held(folder))) == found
