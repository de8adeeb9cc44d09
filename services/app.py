"""The web services as one Flask application."""

from __future__ import annotations

from importlib.metadata import version
from typing import cast

from flask.json.provider import DefaultJSONProvider
from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI

from chiron.services.access import guard
from chiron.services.dashboard.mount import dashboard
from chiron.services.endpoints import COMMON, COMPONENTS, JOBS
from chiron.services.folders import example_folder
from chiron.services.host import Config, Host, remove_workspace
from chiron.services.openapi import describe
from chiron.services.problems import answer_errors, refuse_body
from chiron.services.strict_request import JSON_LIMIT, StrictRequest
from chiron.workflow.errors import ChironError


def create_app(config: Config) -> OpenAPI:
    """Return the application; its jobs run while it is ``running()``; ``unknown-component``."""
    unknown = [name for name in config.components if name not in COMPONENTS]
    if unknown:
        message = f"there is no component {unknown[0]!a}: all, {', '.join(COMPONENTS)}"
        raise ChironError("unknown-component", message)
    app = OpenAPI(
        "chiron",
        info=Info(title="Chiron for OpenFaaS", version=version("chiron-openfaas")),
        doc_ui=False,
        static_folder=None,
        validation_error_callback=refuse_body,
    )
    app.request_class = StrictRequest
    app.config.update(MAX_FORM_MEMORY_SIZE=JSON_LIMIT)
    cast(DefaultJSONProvider, app.json).sort_keys = False  # artefacts have their own order
    app.extensions["chiron"] = Host(config, JOBS)
    guard(app, config.secret)
    app.teardown_request(remove_workspace)
    answer_errors(app)
    for api in (*(COMPONENTS[name] for name in config.components), *COMMON):
        app.register_api(api)
    app.register_blueprint(dashboard())
    describe(app, config.secret, config.gateway_url, example_folder(config.root))
    return app
