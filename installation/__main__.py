"""``python -m chiron.installation PACKAGE``: installs a system package, or prints the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from chiron.installation.packages import install_commands, install_line, os_release


def main(package: str) -> int:
    """Return exit status 0 if the command `package` is there in the end, 2 if the user must act."""
    if shutil.which(package):
        return 0
    release = os_release()
    commands = install_commands(package, release) if os.geteuid() == 0 else []
    for command in commands:
        print(f"installing {package}: {' '.join(command)}", file=sys.stderr)
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError):
            break
    if shutil.which(package):
        return 0
    print(f"error: {package} is missing: {install_line(package, release)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
