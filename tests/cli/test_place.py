"""The images that a verb builds for the embedded gateway."""

from __future__ import annotations

import json

import pytest

from chiron.cli.place import build_local
from chiron.workflow.errors import ChironError


def test_a_function_that_cannot_be_built_is_refused_before_another_installs(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIRON_HOME", str(tmp_path / "home"))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "handler.py").write_text("def handle(req):\n    return req\n")
    (tmp_path / "a" / "requirements.txt").write_text("no-package-of-this-name==1\n")
    langs = {"a": "python3-flask", "b": "golang-middleware"}
    functions = {
        name: {"lang": lang, "handler": "a", "image": name} for name, lang in langs.items()
    }
    (tmp_path / "stack.yaml").write_text(json.dumps({"functions": functions}))
    with pytest.raises(ChironError) as refused:
        build_local(tmp_path / "stack.yaml")
    assert (refused.value.code, refused.value.functions) == ("unknown-lang", ("b",))
