"""The requirements of a function: what is in the requirements.txt of its handler folder."""

from __future__ import annotations

from pathlib import Path

from packaging.requirements import Requirement

from openfaas.requirement_lines import LIMIT, parse
from workflow.documents import read_file
from workflow.errors import ChironError


def read_requirements(function: str, folder: Path) -> list[Requirement]:
    """The requirements in `folder`'s requirements.txt, none where there is no such file.

    Raises
    ------
    ChironError
        ``bad-requirement`` with the line that is none; ``missing-file``, ``too-large``.
    """
    file = folder / "requirements.txt"
    if not file.exists():
        return []
    content = read_file(file, f"function {function}: {file}", LIMIT)
    try:
        return parse(content)
    except ValueError as error:
        message = f"function {function}: {file} {error}"
        raise ChironError("bad-requirement", message, functions=[function]) from None
