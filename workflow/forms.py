"""The forms in which a workflow can be written, and its file in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from chiron.workflow.asl_shapes import listed
from chiron.workflow.buckets import is_buckets
from chiron.workflow.dataflows import is_dataflows, translate_dataflows
from chiron.workflow.documents import parse_json, read_file
from chiron.workflow.errors import ChironError
from chiron.workflow.faasflow import is_flat, translate_flat
from chiron.workflow.faasflow_nested import is_nested, translate_nested
from chiron.workflow.steps import Translated
from chiron.workflow.strict_yaml import Lines, load_document

#: The file name of a workflow in JSON, and all file names; a folder has one of them.
WORKFLOW_FILE = "workflow.json"
WORKFLOW_FILES = (WORKFLOW_FILE, "workflow.yaml", "workflow.yml")
#: The maximum size of such a file, in bytes: thousands of states.
WORKFLOW_LIMIT = 4 * 1024 * 1024

_FORMS = (
    (is_dataflows, translate_dataflows),
    (is_flat, translate_flat),
    (is_nested, translate_nested),
)


def known_form(document: Any) -> Translated:
    """Return `document` as a plain DAG, States Language or buckets; ``bad-document`` if unknown."""
    if isinstance(document, dict):
        if "States" in document or "tasks" in document or is_buckets(document):
            return Translated(document, {})
        functions = document.get("functions")
        if functions and isinstance(functions, dict):
            message = (
                "this is a stack.yaml, which has functions and no workflow of them: name the "
                "workflow's file; chiron init without --states writes one"
            )
            raise ChironError("bad-document", message, path="functions")
        for is_form, translate in _FORMS:
            if is_form(document):
                return translate(document)
    raise ChironError(
        "bad-document",
        'a workflow is an object with "StartAt" and "States" (Amazon States Language), '
        'with "tasks" and "edges", with "buckets", or of the form of FaaSFlow or DataFlower'
        + (f": not one with {listed(document)}" if isinstance(document, dict) else ""),
    )


class Written(NamedTuple):
    """A document as in its file, and the lines of its elements; JSON has no lines."""

    file: Path
    document: Any
    lines: Lines | None = None

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Add the file, and the lines of their paths, to ChironErrors of the block."""
        try:
            yield
        except ChironError as error:
            placed = error.relocated(self.lines.of) if self.lines is not None else error
            raise placed.within(str(self.file)) from None


def read_written(file: Path) -> Written:
    """Return the document in a file: YAML if its name ends so, otherwise JSON.

    Raises ``missing-file``, ``too-large``, ``bad-json``, ``bad-yaml``, ``duplicate-key``.
    """
    what = f"workflow {file}"
    content = read_file(file, what, WORKFLOW_LIMIT)
    if file.suffix.lower() not in (".yaml", ".yml"):
        return Written(file, parse_json(content, what))
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ChironError("bad-yaml", f"{what} is not UTF-8") from None
    return Written(file, *load_document(text, what))


def read_source(source: Path) -> Written:
    """Return the document of the workflow in `source`, its file or the folder with its file."""
    file = workflow_file(source) if source.is_dir() else source
    if file is None:
        message = f"folder {source} has no {' or '.join(WORKFLOW_FILES)}: name the workflow's file"
        raise ChironError("missing-file", message)
    return read_written(file)


def workflow_file(folder: Path) -> Path | None:
    """Return the workflow's file in `folder`, None without one; ``two-workflows`` for several."""
    there = [folder / name for name in WORKFLOW_FILES if os.path.lexists(folder / name)]
    if len(there) > 1:
        listed = " and ".join(file.name for file in there)
        raise ChironError("two-workflows", f"folder {folder} has {listed}: keep one of them")
    return there[0] if there else None


def workflow_folders(base: Path, below: str = "") -> list[Path]:
    """Return the folders with a workflow's file, at the glob pattern `below` of `base`, sorted."""
    found = {file.parent for name in WORKFLOW_FILES for file in base.glob(f"{below}{name}")}
    return sorted(found)


@contextmanager
def at_origins(origins: dict[str, str]) -> Iterator[None]:
    """Map the paths in ChironErrors of the block from a translated document to its source."""

    def origin(path: str | None) -> str | None:
        above = path or ""
        while above and above not in origins:
            above = above.rpartition(".")[0]
        return origins.get(above, path)

    try:
        yield
    except ChironError as error:
        raise (error.relocated(origin) if origins else error) from None
