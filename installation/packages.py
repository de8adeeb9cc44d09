"""The result of a check of this machine, and the command that installs a missing package."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_APT = (("apt-get", "update"), ("apt-get", "install", "-y"))
_DNF = (("dnf", "install", "-y"),)
_ZYPPER = (("zypper", "--non-interactive", "install"),)

#: The install commands by os-release(5)'s ID or ID_LIKE; the package is appended to the last.
_COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "debian": _APT,
    "ubuntu": _APT,
    "fedora": _DNF,
    "rhel": _DNF,
    "centos": _DNF,
    "amzn": _DNF,
    "alpine": (("apk", "add"),),
    "arch": (("pacman", "-S", "--noconfirm"),),
    "suse": _ZYPPER,
    "opensuse": _ZYPPER,
}


@dataclass(frozen=True)
class Finding:
    """The result of one check, such as ``strace``: whether it passed, what it found, and the
    command that fixes it, if any.

    ``chiron deploy --local`` needs what is `required`; the rest is for other ways to run.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    required: bool = True


def os_release() -> dict[str, str]:
    """Return os-release(5) of this machine, empty if it has none."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def install_commands(package: str, release: Mapping[str, str]) -> list[list[str]]:
    """Return the commands that install `package` as root; none for an unknown distribution."""
    families = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    known = next((_COMMANDS[family] for family in families if family in _COMMANDS), ())
    commands = [list(command) for command in known]
    if commands:
        commands[-1].append(package)
    return commands


def extra_line(extra: str) -> str:
    """Return the command that installs an extra of chiron for this Python, with its own pip."""
    return f"{shlex.quote(sys.executable)} -m pip install 'chiron-openfaas[{extra}]'"


def install_line(package: str, release: Mapping[str, str], *, root: bool | None = None) -> str:
    """Return the shell line that installs `package`, with sudo if the user is not root."""
    if root is None:
        root = os.geteuid() == 0
    commands = install_commands(package, release)
    if not commands:
        return f"install {package} with this distribution's package manager"
    sudo = [] if root else ["sudo"]
    return " && ".join(shlex.join(sudo + command) for command in commands)
