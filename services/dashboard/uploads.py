"""Files that a browser has dropped, as one archive: then the limits of archives hold for all."""

from __future__ import annotations

import base64
import binascii
import io
import zipfile
from collections.abc import Sequence
from pathlib import PurePosixPath

from workflow.errors import ChironError
from workflow.forms import WORKFLOW_FILE, WORKFLOW_FILES

_ARCHIVES = (".zip", ".tar.gz", ".tgz")
#: Files that mean something beside a workflow.
_OTHERS = ("profile.json", "platform.json", "constraints.json", "functions.json")


def packed(contents: Sequence[str], names: Sequence[str]) -> bytes:
    """The archive that was dropped, or one of all files, given as ``data:`` URLs.

    A single document that is no archive is the workflow, whatever its name.

    Raises ``bad-archive``.
    """
    files = [(name, _decoded(content)) for name, content in zip(names, contents, strict=True)]
    if len(files) == 1:
        name, content = files[0]
        if name.lower().endswith(_ARCHIVES):
            return content
        if name not in (*WORKFLOW_FILES, *_OTHERS):
            yaml = name.lower().endswith((".yaml", ".yml"))
            files = [("workflow.yaml" if yaml else WORKFLOW_FILE, content)]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        for name, content in files:
            target.writestr(str(PurePosixPath(name.lstrip("/"))), content)
    return archive.getvalue()


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content.partition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        message = "what was uploaded is no data in base64: drop the files once more"
        raise ChironError("bad-archive", message) from None
