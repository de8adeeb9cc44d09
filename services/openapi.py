"""The OpenAPI document at /openapi.json, and the page that shows it, without the internet."""

from __future__ import annotations

import copy
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from flask import Blueprint, Response, jsonify, render_template
from flask_openapi3.openapi import OpenAPI
from pydantic import BaseModel

from chiron.openfaas.credentials import Credentials
from chiron.services.host import Accepted
from chiron.services.problems import Problem
from chiron.services.strict_request import ARCHIVE, KEY_HEADER

_SCHEMAS = "#/components/schemas/"
#: The header that makes a request safe to repeat.
_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "description": "A request with the key of an earlier one is answered with that one's job",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}


def describe(app: OpenAPI, secret: Credentials | None, gateway: str, directory: str) -> None:
    """Serve the document of all endpoints registered in `app`, and the page that shows it.

    `gateway` is the URL of the gateway to deploy on, `directory` an example of a folder's name.
    """
    document = _document(app, directory)
    document["info"]["description"] = (
        f"Functions run on the gateway {_without_credentials(gateway)}. A workflow is a folder "
        f"below the server's root, such as `{directory}`, or the archive of a form."
    )
    _describe_access(document, secret)
    pages = Blueprint(
        "docs",
        __name__,
        template_folder=str(Path(__file__).parent),
        static_folder=str(files("flask_openapi3_swagger") / "templates" / "swagger"),
        static_url_path="/docs/static",
    )

    @pages.get("/openapi.json")
    def openapi() -> Response:
        return jsonify(document)

    @pages.get("/docs")
    def docs() -> str:
        return render_template("docs.html.jinja", title=document["info"]["title"], rows=rows)

    rows = [
        (method.upper(), path, operation["summary"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    app.register_blueprint(pages)


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _document(app: OpenAPI, directory: str) -> dict[str, Any]:
    """Return the document of flask-openapi3, with the parts that all endpoints have in common."""
    document: dict[str, Any] = copy.deepcopy(app.api_doc)
    schemas = document["components"]["schemas"]
    for model in (Accepted, Problem):
        template = f"{_SCHEMAS}{{model}}"
        schemas[model.__name__] = model.model_json_schema(
            ref_template=template, mode="serialization"
        )
    schemas.pop(app.validation_error_model.__name__, None)
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop(app.validation_error_status, None)
            responses["default"] = _answer("The error, and how to fix it", Problem)
            if "202" in responses:
                responses["202"] = _answer(responses["202"]["description"], Accepted)
                operation.setdefault("parameters", []).append(_KEY)
            if "requestBody" in operation:
                _offer_form(operation["requestBody"]["content"], schemas, directory)
    return document


def _describe_access(document: dict[str, Any], secret: Credentials | None) -> None:
    """Describe the required credentials, for which the page then shows a form."""
    document["components"].pop("securitySchemes", None)
    if secret is not None:
        scheme = {"type": "http", "scheme": secret.scheme.lower()}
        document["components"]["securitySchemes"] = {secret.scheme: scheme}
        document["security"] = [{secret.scheme: []}]


def _offer_form(content: dict[str, Any], schemas: dict[str, Any], directory: str) -> None:
    """Describe the body as a form too, with an archive as an alternative to a directory."""
    reference = content["application/json"]["schema"]
    form = copy.deepcopy(schemas[reference["$ref"].removeprefix(_SCHEMAS)])
    if "directory" in form["properties"]:
        form["properties"][ARCHIVE] = {"type": "string", "format": "binary"}
    content["multipart/form-data"] = {"schema": form}
    required = form.get("required", [])
    if "directory" in form["properties"] and set(required) <= {"slo"}:
        slo = {"slo": "200ms"} if required else {}
        content["application/json"]["example"] = {"directory": directory} | slo


def _answer(description: str, model: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": f"{_SCHEMAS}{model.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}
