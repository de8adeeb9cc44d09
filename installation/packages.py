"""What a check of this machine found, and the line that installs what is missing."""

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

#: What installs packages, by os-release(5)'s ID or ID_LIKE; the last command takes the package.
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
    """One thing that was looked for, such as ``strace``: whether it is as it has to be, what is
    there or why it is not usable, and the line that mends it, where something is to be mended.

    ``chiron deploy --local`` needs what is `required`; the rest is for other ways to run.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    required: bool = True


def os_release() -> dict[str, str]:
    """os-release(5) of this machine, empty where it has none."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def install_commands(package: str, release: Mapping[str, str]) -> list[list[str]]:
    """The argument lists that install `package` as root; none for an unknown distribution."""
    families = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    known = next((_COMMANDS[family] for family in families if family in _COMMANDS), ())
    commands = [list(command) for command in known]
    if commands:
        commands[-1].append(package)
    return commands


def extra_line(extra: str) -> str:
    """The line that brings an extra of chiron's to where it runs, whatever pip the shell has."""
    return f"{shlex.quote(sys.executable)} -m pip install 'chiron-openfaas[{extra}]'"


def install_line(package: str, release: Mapping[str, str], *, root: bool | None = None) -> str:
    """The line to type that installs `package`, with sudo where the user is not root."""
    if root is None:
        root = os.geteuid() == 0
    commands = install_commands(package, release)
    if not commands:
        return f"install {package} with this distribution's package manager"
    sudo = [] if root else ["sudo"]
    return " && ".join(shlex.join(sudo + command) for command in commands)
