"""The examples in the docstrings of the pure packages are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import chiron.predictor
import chiron.scheduler
import chiron.workflow
from tests.rows import each_row

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (chiron.workflow, chiron.predictor, chiron.scheduler)
    for module in pkgutil.iter_modules(package.__path__)
]


@each_row("name", MODULES)
def test_examples_answer_what_they_say(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("package", ["chiron.workflow", "chiron.predictor", "chiron.scheduler"])
def test_every_package_shows_an_example(package):
    modules = [importlib.import_module(name) for name in MODULES if name.startswith(package)]
    assert any(doctest.testmod(module).attempted for module in modules)
