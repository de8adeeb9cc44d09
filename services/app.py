"""The web services as one Flask application: a blueprint a component, and what they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from flask import request
from flask.json.provider import DefaultJSONProvider
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI

import generator.service
import predictor.service
import profiler.service
import scheduler.service
from generator.launcher import Launcher
from services import deployments, job_api
from services.health import health_api
from services.host import Host, remove_workspace, state_folder
from services.openapi import describe
from services.problems import answer_errors, refuse_body
from services.strict_request import JSON_LIMIT, StrictRequest
from services.worker import Progress
from workflow.errors import ChironError

#: The blueprints by the names that `chiron serve` takes.
COMPONENTS: dict[str, APIBlueprint] = {
    "profiler": profiler.service.api,
    "predictor": predictor.service.api,
    "scheduler": scheduler.service.api,
    "generator": generator.service.api,
    "deployments": deployments.api,
}
#: Names under which a client on this machine may reach the services: others are a web page's.
_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

_Job = Callable[[Mapping[str, Any], Launcher, Progress], Any]
_JOBS: dict[str, _Job] = {
    **profiler.service.JOBS,
    deployments.DEPLOYMENT: deployments.run_deployment,
}


@dataclass(frozen=True)
class Config:
    """What the services work with.

    Attributes
    ----------
    connect
        Gives a launcher for the length of one job.
    gateway_url
        The gateway that /healthz looks at.
    root
        Below it are the workflow folders that clients may name.
    state
        Where jobs, their uploads and results are kept.
    components
        Which of `COMPONENTS` are served.
    """

    connect: Callable[[], AbstractContextManager[Launcher]]
    gateway_url: str
    root: Path = field(default_factory=Path.cwd)
    state: Path = field(default_factory=state_folder)
    components: Sequence[str] = tuple(COMPONENTS)
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)


def create_app(config: Config) -> OpenAPI:
    """The application; its jobs run while ``app.extensions["chiron"].running()`` is entered.

    Raises
    ------
    ChironError
        ``unknown-component``; ``state-unusable``.
    """
    unknown = [name for name in config.components if name not in COMPONENTS]
    if unknown:
        message = f"there is no component {unknown[0]!a}: all, {', '.join(COMPONENTS)}"
        raise ChironError("unknown-component", message)
    app = OpenAPI(
        "chiron",
        info=Info(title="Chiron for OpenFaaS", version=version("chiron-openfaas")),
        security_schemes={},
        doc_ui=False,
        static_folder=None,
        validation_error_callback=refuse_body,
    )
    app.request_class = StrictRequest
    app.config.update(TRUSTED_HOSTS=_HOSTS, MAX_FORM_MEMORY_SIZE=JSON_LIMIT)
    cast(DefaultJSONProvider, app.json).sort_keys = False  # artefacts have an order of their own
    runners = {kind: partial(_run, config, work) for kind, work in _JOBS.items()}
    app.extensions["chiron"] = Host(config.root, config.state, runners, config.variables)
    app.before_request(_refuse_other_origins)
    app.teardown_request(remove_workspace)
    answer_errors(app)
    for name in config.components:
        app.register_api(COMPONENTS[name])
    app.register_api(job_api.api)
    app.register_api(health_api(config.gateway_url, config.variables))
    describe(app)
    return app


def _run(config: Config, work: _Job, params: Mapping[str, Any], progress: Progress) -> Any:
    with config.connect() as launcher:
        return work(params, launcher, progress)


def _refuse_other_origins() -> None:
    """Keep web pages of other sites from using the services through the user's browser."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise ChironError(
            "cross-origin", "web pages of other sites may not use the services", status=403
        )
