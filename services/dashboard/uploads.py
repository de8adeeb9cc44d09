"""Files that a browser has dropped, as one archive: then the limits of archives hold for all."""

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

#: Most bytes of all files together: in base64 they have to fit into a request.
LARGEST = 40 * 1024 * 1024
#: Folders that the browser leaves out: nothing of a workflow is in them.
SKIPPED = (".git", ".venv", "__pycache__", "node_modules")
_ARCHIVES = (".zip", ".tar.gz", ".tgz")
#: Files that mean something beside a workflow.
_OTHERS = ("profile.json", "platform.json", "constraints.json", "functions.json")


class Upload(Document):
    """What was dropped, as ``assets/files.js`` gives it: files by name, in base64.

    A name has the folders from the one that was dropped on. A file that the browser could not read
    is None. `size` is that of all in bytes; where it is more than `LARGEST`, there are no contents.
    """

    names: list[str]
    contents: list[str | None]
    size: int

    def saved(self, owner: Host) -> UploadPlaces:
        """The places of the request's archive, which is written; raises what `packed` raises."""
        content = self.packed()
        places = owner.upload_places(self.names[0] if len(self.names) == 1 else None)
        places.archive.write_bytes(content)
        return places

    def packed(self) -> bytes:
        """The archive that was dropped, or one of all files.

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
    """The folder that is shown: the one that `source` names, or that was `dropped`.

    Raises what opening it raises.
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
