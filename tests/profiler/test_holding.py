"""When an earlier profile, or a kept platform, still holds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.profiler import holding, kept_platform
from chiron.profiler.holding import holding_profile, profiled_source
from chiron.profiler.kept_platform import KeptPlatforms
from chiron.workflow.documents import dump
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

PROFILE = Profile(format=1, workflow="small", functions={}, source="abc", place="here")


@pytest.mark.parametrize(
    ("change", "quiet", "words"),
    [
        ({}, True, None),
        ({"source": ""}, True, "does not say"),
        ({"source": "abd"}, True, "of other code"),
        ({"place": "there"}, True, "taken at there, not at here"),
        ({"warnings": ("no payload reaches f",)}, True, None),
        ({"others": 0.02}, True, None),
        ({"others": 0.5}, False, None),
        ({"others": 0.5}, True, "quiet now"),
    ],
)
def test_a_profile_holds_for_the_same_code_and_place(
    change: dict[str, object], quiet: bool, words: str | None
) -> None:
    profile = PROFILE.model_copy(update=change)
    said = holding.outdated(profile, "abc", "here", quiet=lambda: quiet)
    assert said is None if words is None else words in (said or "")


@pytest.mark.parametrize(
    ("error", "known", "others", "quiet", "words"),
    [
        (0.1, 0.12, None, True, None),
        (0.31, 0.12, 0.0, True, "31% off"),
        (0.31, 0.12, 0.0, False, None),
        (0.1, 0.4, 0.0, True, "were 40% off"),
        (0.1, 0.4, 0.0, False, None),
        (0.1, 0.12, 0.5, False, None),
        (0.1, 0.12, 0.5, True, "quiet now"),
    ],
)
def test_a_platform_holds_while_its_predictions_do(
    platform: Platform,
    error: float,
    known: float,
    others: float | None,
    quiet: bool,
    words: str | None,
) -> None:
    kept = platform.model_copy(
        update={"prediction_error": known, "others": others, "warnings": ("off",)}
    )
    said = kept_platform.outdated(kept, error, quiet=lambda: quiet)
    assert said is None if words is None else words in (said or "")


def test_a_platform_is_kept_for_the_runtime_that_it_was_measured_with(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / kept_platform.WRAP
    (template / "wrap").mkdir(parents=True)
    (template / "wrap" / "bootstrap.py").write_text("")
    monkeypatch.setattr(kept_platform, "TEMPLATES", tmp_path)
    monkeypatch.setattr(kept_platform, "probed", lambda kept, *_: (kept, 0.0))
    monkeypatch.setattr(kept_platform, "calibrate", lambda *_, **__: measured_now)
    measured_now = platform.model_copy(update={"name": "measured now"})
    launcher: Any = SimpleNamespace(place="here", store=SimpleNamespace(url=""))
    platforms = KeptPlatforms(tmp_path / "kept")
    platforms.keep(platform, launcher, print)
    assert platforms.platform(launcher, print).name == platform.name
    (template / "wrap" / "bootstrap.py").write_text("changed = True")
    assert platforms.platform(launcher, print).name == "measured now"


def test_what_is_profiled_is_named_by_code_and_payloads(small: WorkflowFolder) -> None:
    before = profiled_source(small)
    assert profiled_source(small) == before
    (small.path / "payload.json").write_text('{"another": "payload"}')
    other = profiled_source(small)
    (small.path / "functions" / "wave" / "handler.py").write_text(
        "def handle(req):\n    return 1\n"
    )
    assert len({before, other, profiled_source(small)}) == 3


def test_the_first_profile_that_holds_is_used_and_that_is_said(
    small: WorkflowFolder, tmp_path: Path
) -> None:
    own = PROFILE.model_copy(update={"source": profiled_source(small)})
    texts = {"none": "", "other": dump(own.model_copy(update={"workflow": "other"}))}
    texts |= {"old": dump(PROFILE), "own": dump(own)}
    files = [tmp_path / f"{name}.json" for name in (*texts, "missing")]
    for file, text in zip(files, texts.values(), strict=False):
        file.write_text(text)
    said: list[str] = []
    assert holding_profile(files, small, "here", said.append) == own
    assert "old.json is of other code" in said[0]
    assert said[1].startswith(f"using {tmp_path / 'own.json'}")


def test_a_platform_that_cannot_be_kept_is_used_and_said(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_platform, "calibrate", lambda *_, **__: platform)
    place: Any = SimpleNamespace(place="there", store=SimpleNamespace(url=""))
    said = list[str]()
    platforms = kept_platform.KeptPlatforms(Path("/proc/home/platforms"))
    assert platforms.platform(place, said.append) is platform
    (line,) = said
    assert "/proc/home/platforms cannot be written: set CHIRON_HOME" in line
