"""`chiron evaluate dashboard` measures the dashboard in Chromium, or says what is missing."""

from __future__ import annotations

import pytest

from chiron.evaluation import dashboard
from chiron.evaluation.dashboard import measure_dashboard
from chiron.workflow.errors import ChironError


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(dashboard.shutil, "which", lambda _: None)

    with pytest.raises(ChironError) as refusal:
        measure_dashboard("http://127.0.0.1:9", {}, 0, 1, print)
    assert refusal.value.code == "no-browser"
