"""The client of an OpenFaaS gateway: what faas-cli can do, as methods."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote

from pydantic import ValidationError
from requests import Response

from openfaas import readiness
from openfaas.credentials import Credentials
from openfaas.objects import (
    FunctionSpec,
    FunctionStatus,
    GatewayInfo,
    LogLine,
    Secret,
    WireObject,
)
from openfaas.transport import Transport
from workflow.errors import ChironError

__all__ = ["FunctionSpec", "FunctionStatus", "Gateway"]

#: What faas-cli allows a call to the gateway's API, in seconds.
TIMEOUT_S = 60.0
#: Connections kept to the gateway: as many calls may be under way without opening new ones.
CONNECTIONS = 64
#: Longest that a removal may take, in seconds: Kubernetes gives pods 30 s to end; and the pause
#: between two looks whether it is done.
GONE_S, _INTERVAL_S = 90.0, 0.1
#: What Kubernetes says of a name whose function is being removed.
_BEING_REMOVED = "object is being deleted"
#: Lines of a log that are asked for at least: faasd answers with the first ones of five minutes,
#: where the last ones are wanted.
_LOGGED = 10_000

Answer = TypeVar("Answer", bound=WireObject)


class Gateway:
    """An OpenFaaS gateway; safe to share between threads, and a context manager.

    Every method raises ChironError: ``no-gateway``, ``timeout``, ``unauthorised``, ``not-found``,
    or ``gateway-error`` with the gateway's own words.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        verify_tls: bool = True,
        timeout_s: float = TIMEOUT_S,
        connections: int = CONNECTIONS,
    ) -> None:
        self._transport = Transport(
            url,
            credentials,
            verify_tls=verify_tls,
            timeout_s=timeout_s,
            connections=connections,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    @property
    def url(self) -> str:
        """The gateway's URL, without a slash at its end."""
        return self._transport.url

    def info(self) -> GatewayInfo:
        """Which provider and versions the gateway has."""
        return self._parsed(GatewayInfo, self._get("/system/info", "information"))

    def healthy(self) -> bool:
        """Whether a gateway answers at the URL and calls itself healthy."""
        try:
            return self._transport.function("GET", "/healthz").ok
        except ChironError:
            return False

    def functions(self) -> list[FunctionStatus]:
        """The deployed functions."""
        answer = self._get("/system/functions", "list of functions")
        return [self._parsed(FunctionStatus, item) for item in self._listed(answer)]

    def describe(self, name: str) -> FunctionStatus:
        """The function `name`, with what it uses."""
        path = f"/system/function/{quote(name, safe='')}"
        answer = self._get(path, f"function {name}", {"usage": "1"})
        return self._parsed(FunctionStatus, answer)

    def deploy(self, spec: FunctionSpec) -> None:
        """Update the function, or create it where the gateway does not know it yet.

        The gateway answers before the function does: see `wait_ready`. One of that name that is
        being removed is waited for.
        """
        deadline = time.monotonic() + GONE_S
        while True:
            try:
                self._update_or_create(spec)
                return
            except ChironError as error:
                if _BEING_REMOVED not in error.message:
                    raise
                if time.monotonic() > deadline:
                    see = readiness.describe_line(spec.service, spec.namespace)
                    error.add(f"it still is after {GONE_S:g} s: see {see}")
                    raise
            time.sleep(_INTERVAL_S)

    def remove(self, name: str) -> None:
        """Remove the function `name`; return once it is gone.

        Kubernetes answers at once and ends its pods afterwards. Raises ``not-removed`` if they take
        longer than it should give them.
        """
        body, deadline = {"functionName": name}, time.monotonic() + GONE_S
        try:
            self._transport.system(
                "DELETE", "/system/functions", what=f"function {name}", json=body
            )
        except ChironError as error:
            if error.code != "not-found" or self._known(name) is None:
                raise  # else it is being removed already
        while (function := self._known(name)) is not None:
            if time.monotonic() > deadline:
                see = readiness.describe_line(name, function.namespace)
                message = (
                    f"function {name} is still there {GONE_S:g} s after its removal: see {see}"
                )
                raise ChironError("not-removed", message, functions=(name,), status=504)
            time.sleep(_INTERVAL_S)

    def scale(self, name: str, replicas: int) -> None:
        """Ask for `replicas` of the function `name`; Community Edition keeps them within 1 to 5."""
        self._transport.system(
            "POST",
            f"/system/scale-function/{quote(name, safe='')}",
            what=f"function {name}",
            json={"serviceName": name, "replicas": replicas},
        )

    def invoke(
        self,
        name: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        path: str = "",
    ) -> Response:
        """The answer of the function `name` to `body`, whatever its status (404: no such one)."""
        return self._transport.function(
            "POST",
            f"/function/{quote(name, safe='')}{path}",
            body=body,
            headers={"Content-Type": "text/plain"} | dict(headers or {}),
            timeout_s=timeout_s,
        )

    def get(self, name: str, path: str, timeout_s: float | None = None) -> Response:
        """The answer of the function `name` to GET of `path`, whatever its status."""
        url = f"/function/{quote(name, safe='')}{path}"
        return self._transport.function("GET", url, timeout_s=timeout_s)

    def wait_ready(self, name: str, timeout_s: float = 30.0) -> None:
        """Return once the function `name` answers; ``not-ready`` after `timeout_s` seconds."""
        readiness.wait_ready(self, self._transport, name, timeout_s)

    def logs(self, name: str, tail: int = 100) -> list[LogLine]:
        """The last `tail` lines that the function `name` wrote."""
        asked = max(tail, _LOGGED)
        params = {"name": name, "follow": "false", "tail": str(asked)}
        response = self._transport.system(
            "GET", "/system/logs", what=f"function {name}", params=params
        )
        lines = [line for line in response.content.splitlines() if line.strip()]
        return [self._parsed(LogLine, self._decoded(line)) for line in lines[-tail:]]

    def secrets(self) -> list[str]:
        """The names of the secrets."""
        answer = self._get("/system/secrets", "list of secrets")
        return [self._parsed(Secret, item).name for item in self._listed(answer)]

    def create_secret(self, name: str, value: str | bytes) -> None:
        """Create the secret `name`."""
        self._write_secret("POST", name, value)

    def update_secret(self, name: str, value: str | bytes) -> None:
        """Replace the value of the secret `name`."""
        self._write_secret("PUT", name, value)

    def remove_secret(self, name: str) -> None:
        """Remove the secret `name`."""
        body = {"name": name}
        self._transport.system("DELETE", "/system/secrets", what=f"secret {name}", json=body)

    def _update_or_create(self, spec: FunctionSpec) -> None:
        what = f"function {spec.service}"
        body = spec.body()
        try:
            self._transport.system("PUT", "/system/functions", what=what, json=body)
        except ChironError as error:
            if error.code != "not-found":
                raise
            self._transport.system("POST", "/system/functions", what=what, json=body)

    def _known(self, name: str) -> FunctionStatus | None:
        try:
            return self.describe(name)
        except ChironError as error:
            if error.code != "not-found":
                raise
            return None

    def _write_secret(self, method: str, name: str, value: str | bytes) -> None:
        if isinstance(value, bytes):
            content = {"rawValue": base64.b64encode(value).decode("ascii")}
        else:
            content = {"value": value}
        body = {"name": name} | content
        self._transport.system(method, "/system/secrets", what=f"secret {name}", json=body)

    def _get(self, path: str, what: str, params: Mapping[str, str] | None = None) -> Any:
        return self._decoded(self._transport.system("GET", path, what=what, params=params).content)

    def _decoded(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except ValueError:
            raise self._not_a_gateway() from None

    def _listed(self, answer: Any) -> list[Any]:
        if isinstance(answer, list):
            return answer
        raise self._not_a_gateway()

    def _parsed(self, model: type[Answer], value: Any) -> Answer:
        try:
            return model.model_validate(value)
        except ValidationError:
            raise self._not_a_gateway() from None

    def _not_a_gateway(self) -> ChironError:
        message = f"what answers at {self.url} is not an OpenFaaS gateway: check -g or OPENFAAS_URL"
        return ChironError("gateway-error", message, status=502)
