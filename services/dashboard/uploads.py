"""Files dropped on the page, packed into one archive, so that the limits of archives apply."""

from __future__ import annotations

import base64
import binascii
import io
import zipfile
from pathlib import PurePosixPath
from typing import Any

from chiron.services.host import Host, UploadPlaces, host
from chiron.workflow.documents import Document, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import WORKFLOW_FILE, WORKFLOW_FILES

#: The most bytes of all files together: in base64 they must fit into a request.
LARGEST = 40 * 1024 * 1024
#: Folders that the browser leaves out: they have nothing of a workflow.
SKIPPED = (".git", ".venv", "__pycache__", "node_modules")
_ARCHIVES = (".zip", ".tar.gz", ".tgz")
#: Files with a meaning beside a workflow.
_OTHERS = ("profile.json", "platform.json", "constraints.json", "functions.json")


class Upload(Document):
    """The dropped files by name, in base64, as ``assets/files.js`` sends them.

    A name has the folders below the drop. A file that the browser could not read is None. `size` is
    the total in bytes; if it is more than `LARGEST`, there are no contents.
    """

    names: list[str]
    contents: list[str | None]
    size: int

    def saved(self, owner: Host) -> UploadPlaces:
        """Write the request's archive and return its places; raises the errors of `packed`."""
        content = self.packed()
        places = owner.upload_places(self.names[0] if len(self.names) == 1 else None)
        places.archive.write_bytes(content)
        return places

    def packed(self) -> bytes:
        """Return the dropped archive, or an archive of all files.

        A single document that is no archive is the workflow, whatever its name.

        Raises ``bad-archive``; ``too-large`` (413).
        """
        if self.size > LARGEST:
            raise ChironError(
                "too-large",
                f"what was dropped has {self.size / 1024**2:.0f} MiB, of at most "
                f"{LARGEST // 1024**2}: drop the workflow alone, or name its folder below the "
                "server's root",
                status=413,
            )
        pairs = zip(self.names, self.contents, strict=True)
        files = [(name, _decoded(name, content)) for name, content in pairs]
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


def folder_of(source: dict[str, Any] | None, dropped: Any) -> WorkflowFolder:
    """Return the folder that is shown: the folder that `source` names, or that was `dropped`.

    Raises the errors of opening it.
    """
    if source and source.get("directory") is not None:
        return host().open_folder(source["directory"])
    return host().open_upload(validate(Upload, dropped, "the upload").saved(host()))


def _decoded(name: str, content: Any) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (TypeError, binascii.Error, ValueError):
        message = f"{name} was not uploaded whole: drop the files once more"
        raise ChironError("bad-archive", message) from None
