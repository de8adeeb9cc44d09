"""The generator's endpoint: a plan and a workflow folder in, the deployable folder out."""

from __future__ import annotations

import tarfile
from pathlib import Path

from flask import Response, send_file
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from generator.generate import Sources, generate
from services.host import host
from workflow.documents import Document
from workflow.folder import WorkflowFolder
from workflow.plan import Plan
from workflow.units import parse_timeout_s

_BUILD = "build"
_GZIP = "application/gzip"

api = APIBlueprint(
    "generator",
    __name__,
    url_prefix="/generator",
    abp_tags=[Tag(name="generator", description="Plans as ordinary OpenFaaS functions")],
)


class GenerateRequest(Document):
    """The content of plan.json; the workflow is a folder below the root, or the form's archive.

    A request to what is generated may take `timeout`, a duration with its unit.
    """

    plan: Plan
    timeout: str | None = None
    directory: str | None = None


@api.post(
    "/generate",
    responses={
        200: {
            "description": "build/ as a .tar.gz, in which faas-cli up runs",
            "content": {_GZIP: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def post_generate(body: GenerateRequest) -> Response:
    """Turn a plan into the folder that faas-cli builds and deploys."""
    folder = host().open_folder(body.directory)
    out = host().workspace() / _BUILD
    limit_s = parse_timeout_s(body.timeout)
    archive = host().compute(write_archive, body.plan, folder.path, out, limit_s)
    return send_file(archive, mimetype=_GZIP, as_attachment=True, download_name="build.tar.gz")


def write_archive(plan: Plan, folder: Path, out: Path, timeout_s: float | None) -> str:
    """Generate `plan` of the workflow in `folder` into `out`; returns the path of its archive."""
    generate(plan, Sources.read(WorkflowFolder.open(folder)), out, timeout_s)
    archive = out.with_name("build.tar.gz")
    with tarfile.open(archive, mode="w:gz") as tar:
        tar.add(out, arcname=out.name, filter=_anonymous)
    return str(archive)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member without the server's user and group."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
