"""The web services as one Flask application: a blueprint a component, and what they share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from flask.json.provider import DefaultJSONProvider
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI

from deployment.launcher import Launcher
from openfaas.credentials import Credentials
from services import (
    NAMES,
    child,
    deployment_api,
    generator_api,
    job_api,
    predictor_api,
    profiler_api,
    scheduler_api,
)
from services.access import guard
from services.child import Limits
from services.folders import example_folder
from services.health import health_api
from services.host import Host, Run, remove_workspace, state_folder
from services.openapi import describe
from services.problems import answer_errors, refuse_body
from services.strict_request import JSON_LIMIT, StrictRequest
from workflow.errors import ChironError

_APIS = (
    profiler_api.api,
    predictor_api.api,
    scheduler_api.api,
    generator_api.api,
    deployment_api.api,
)
#: The blueprints by the names that `chiron serve` takes.
COMPONENTS: dict[str, APIBlueprint] = dict(zip(NAMES, _APIS, strict=True))
#: What a job may use. Its processes have the CPU limit each.
JOB_LIMITS = Limits(time_s=3600.0, cpu_s=3600)

_Connect = Callable[[], AbstractContextManager[Launcher]]
_Job = Callable[[Mapping[str, Any], Launcher, child.Progress], Any]
_JOBS: dict[str, _Job] = {
    **profiler_api.JOBS,
    deployment_api.DEPLOYMENT: deployment_api.run_deployment,
}


@dataclass(frozen=True)
class Config:
    """What the services work with.

    Attributes
    ----------
    connect
        Gives a launcher for the length of one job; can be pickled.
    gateway_url
        The gateway that /healthz looks at.
    root
        Below it are the workflow folders that clients may name.
    state
        Where jobs, their uploads and results are kept.
    components
        Which of `COMPONENTS` are served.
    secret
        What clients have to send; None where every client that reaches the services may use them.
    job_limits
        What one job may use.
    run
        What runs jobs, and computes answers, within limits.
    """

    connect: _Connect
    gateway_url: str
    root: Path = field(default_factory=Path.cwd)
    state: Path = field(default_factory=state_folder)
    components: Sequence[str] = tuple(COMPONENTS)
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secret: Credentials | None = None
    job_limits: Limits = JOB_LIMITS
    run: Run = child.run


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
        doc_ui=False,
        static_folder=None,
        validation_error_callback=refuse_body,
    )
    app.request_class = StrictRequest
    app.config.update(MAX_FORM_MEMORY_SIZE=JSON_LIMIT)
    cast(DefaultJSONProvider, app.json).sort_keys = False  # artefacts have an order of their own
    runners = {kind: partial(_run, config, work) for kind, work in _JOBS.items()}
    app.extensions["chiron"] = Host(
        config.root, config.state, runners, config.variables, config.run
    )
    guard(app, config.secret)
    app.teardown_request(remove_workspace)
    answer_errors(app)
    for name in config.components:
        app.register_api(COMPONENTS[name])
    app.register_api(job_api.api)
    app.register_api(health_api(config.gateway_url, config.variables))
    describe(app, config.secret, config.gateway_url, example_folder(config.root))
    return app


def _run(
    config: Config,
    job: _Job,
    params: Mapping[str, Any],
    progress: child.Progress,
    stop: child.Stop,
) -> Any:
    work = partial(_connected, job, config.connect, config.state / "job.lock", dict(params))
    return config.run(work, config.job_limits, progress, stop)


def _connected(
    job: _Job, connect: _Connect, lock: Path, params: Mapping[str, Any], progress: child.Progress
) -> Any:
    """Run a job, once that of a server that was killed has removed what it deployed."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with connect() as launcher:
            return job(params, launcher, progress)
