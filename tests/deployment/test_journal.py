"""What watchers tell is kept, the newest of it, whatever else is written."""

from __future__ import annotations

import stat
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest

from chiron.deployment import journal
from chiron.deployment.journal import Journal, WatchEvent

URL = "http://gateway:8080"
_event = partial(WatchEvent, gateway=URL, workflow="w", planner="pgp", event="window")


def note(folder, number):
    Journal(folder).append(_event(at=f"2026-01-01T00:00:{number:02}Z", message=str(number)))


def test_the_newest_is_first_and_others_gateways_are_left_out(tmp_path):
    kept = Journal(tmp_path / "state")
    assert kept.events_of(URL) == []
    first = _event(at="2026-01-01T00:00:01Z", message="grüße", outside=2)
    second = _event(at="2026-01-01T00:00:02Z", message="two\nlines")
    for each in (first, second.model_copy(update={"gateway": "http://other"}), second):
        kept.append(each)
    assert kept.events_of(URL) == [second, first]
    (file,) = kept.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700


def test_it_does_not_grow_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LARGEST", 2000)
    for number in range(60):
        note(tmp_path, number)
        (file,) = tmp_path.iterdir()
        assert file.stat().st_size <= 2000
    kept = [int(each.message) for each in Journal(tmp_path).events_of(URL)]
    assert kept == list(range(59, 59 - len(kept), -1))
    assert len(kept) >= 5


def test_several_write_at_once_and_what_cannot_be_read_is_passed_over(tmp_path):
    with ProcessPoolExecutor(4) as processes:
        list(processes.map(partial(note, tmp_path), range(60)))
    (file,) = tmp_path.iterdir()
    with file.open("a") as more:
        more.write('{"of": "another version"}\nno JSON\n')
    assert sorted(int(each.message) for each in Journal(tmp_path).events_of(URL)) == list(range(60))


def test_where_nothing_can_be_kept_that_is_told(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(OSError, match="state"):
        note(tmp_path / "state", 1)
