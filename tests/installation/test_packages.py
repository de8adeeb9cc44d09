"""Each distribution gets its own line."""

import pytest

from chiron.installation.packages import install_commands, install_line, os_release


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ({"ID": "debian"}, "sudo apt-get update && sudo apt-get install -y strace"),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "sudo apt-get install -y strace"),
        ({"ID": "fedora"}, "sudo dnf install -y strace"),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "sudo dnf install -y strace"),
        ({"ID": "alpine"}, "sudo apk add strace"),
        ({"ID": "opensuse-leap", "ID_LIKE": "suse opensuse"}, "sudo zypper"),
        ({"ID": "arch"}, "sudo pacman -S --noconfirm strace"),
    ],
)
def test_the_line_is_that_of_the_distribution(release, line):
    assert line in install_line("strace", release, root=False)


def test_root_needs_no_sudo():
    line = install_line("strace", {"ID": "debian"}, root=True)
    assert line == "apt-get update && apt-get install -y strace"


def test_an_unknown_distribution_gets_a_sentence_and_no_command():
    assert install_commands("strace", {"ID": "plan9"}) == []
    assert "strace" in install_line("strace", {}, root=False)


def test_a_machine_without_os_release_is_unknown(monkeypatch):
    def missing() -> dict[str, str]:
        raise OSError("no os-release")

    monkeypatch.setattr("platform.freedesktop_os_release", missing)
    assert os_release() == {}
