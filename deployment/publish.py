"""Builds and pushes the images of a stack.yaml with faas-cli, for gateways that pull them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from chiron.openfaas.stack import read_stack
from chiron.workflow.errors import ChironError

_FAAS_CLI = "faas-cli"
_TEMPLATES = "template"
#: The lang of functions with a Dockerfile in their folder instead of a template.
_DOCKERFILE = "dockerfile"
#: The timeout of a command in seconds: it may fetch base images and install packages.
_LONGEST_S = 1800
#: Control sequences that colour words on a terminal (ECMA-48).
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
#: The last lines of faas-cli's output that an error repeats.
_SHOWN_LINES = 6


def publish(stack_file: Path) -> None:
    """Build the functions of `stack_file` in Docker and push their images to their registry.

    Templates that are not beside `stack_file` are fetched from OpenFaaS's store. faas-cli itself
    fetches templates with a source in stack.yaml. Functions with ``skip_build`` are left out.

    Raises ``no-builder`` without faas-cli. Raises ``no-registry`` if an image names no registry
    from which the gateway's nodes could pull it, ``build-failed`` with the function and faas-cli's
    last lines.
    """
    if shutil.which(_FAAS_CLI) is None:
        raise ChironError(
            "no-builder",
            "images for a gateway other than the embedded one are built by faas-cli, which is "
            "missing: make faas-cli, or see installation/README.md",
        )
    stack = read_stack(stack_file, {})
    built = {name: each for name, each in stack.functions.items() if not each.skip_build}
    local = [name for name, function in built.items() if "/" not in function.image]
    if local:
        raise ChironError(
            "no-registry",
            f"the gateway's nodes cannot pull {built[local[0]].image}: set OPENFAAS_PREFIX to a "
            "registry that they pull from and you may push to, such as docker.io/NAME",
            functions=local,
        )
    folder = stack_file.parent
    known = {each.name for each in stack.configuration.templates} if stack.configuration else set()
    langs = {function.lang for function in built.values() if function.lang.lower() != _DOCKERFILE}
    for lang in sorted(langs - known):
        if not (folder / _TEMPLATES / lang).is_dir():
            users = [name for name, function in built.items() if function.lang == lang]
            _run(["template", "store", "pull", lang], folder, users)
    for verb in ("build", "push"):
        for name in built:
            _run([verb, "-f", stack_file.name, "--filter", name], folder, [name])


def _run(arguments: Sequence[str], folder: Path, functions: Sequence[str]) -> None:
    """Run faas-cli in `folder`; an error names `functions`."""
    command = [_FAAS_CLI, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        said = f"it took longer than {_LONGEST_S} s"
    else:
        if done.returncode == 0:
            return
        printed = _COLOURS.sub("", done.stdout.decode(errors="replace"))
        lines = printed.strip().splitlines()
        said = " / ".join(line.strip() for line in lines[-_SHOWN_LINES:])
    message = f"image of {', '.join(functions)}: {' '.join(command)} failed: {said}"
    raise ChironError("build-failed", message, functions=functions, status=500)
