"""The endpoint /healthz: what is missing on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from flask import Response, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from installation.preflight import preflight
from workflow.documents import Document


class Finding(Document):
    """One thing that was looked for, and the line that mends it; `required` by most verbs."""

    name: str
    ok: bool
    detail: str
    fix: str
    required: bool


class Health(Document):
    """Whether everything is there that is required."""

    ok: bool
    findings: tuple[Finding, ...]


def health_api(gateway_url: str, variables: Mapping[str, str]) -> APIBlueprint:
    """The endpoint for a service that deploys on the gateway at `gateway_url`.

    It answers 200 also where something is missing: the service itself is up, and what it can do
    without strace or a gateway it does.
    """
    api = APIBlueprint("health", __name__, abp_tags=[Tag(name="health", description="The machine")])

    @api.get("/healthz", responses={200: Health})
    def get_health() -> Response:
        """Say what is missing on this machine, and the line that fixes it."""
        found = preflight(gateway_url, variables)
        health = Health(
            ok=all(finding.ok for finding in found if finding.required),
            findings=tuple(Finding(**asdict(finding)) for finding in found),
        )
        return jsonify(health.model_dump())

    return api
