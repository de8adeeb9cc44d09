"""What the gateway keeps is its user's alone."""

from __future__ import annotations

from chiron.gateway import images


def test_the_cache_of_an_ordinary_user_is_that_users_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("CHIRON_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / ".cache" / "chiron").mkdir(parents=True, mode=0o755)

    assert images.images_folder() == tmp_path / ".cache" / "chiron" / "images"
    assert (tmp_path / ".cache" / "chiron").stat().st_mode & 0o777 == 0o700


def test_a_lock_can_be_held_by_no_other_user(tmp_path):
    with images.exclusive_lock(tmp_path / "lock"):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
