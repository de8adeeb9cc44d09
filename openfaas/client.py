"""The client of an OpenFaaS gateway, with a method for each call."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import requests
import urllib3
from pydantic import TypeAdapter, ValidationError
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH, select_proxy
from urllib3.exceptions import InsecureRequestWarning

from chiron.openfaas.credentials import Credentials
from chiron.openfaas.function_headers import function_headers
from chiron.openfaas.objects import (
    PRO_LABELS,
    FunctionSpec,
    FunctionStatus,
    GatewayInfo,
    LogLine,
    SecretName,
)
from chiron.openfaas.readiness import describe_line, shown
from chiron.workflow.errors import ChironError

#: faas-cli's timeout of a call to the gateway's API, in seconds.
TIMEOUT_S = 60.0
#: The timeout of connecting, in seconds: Linux sends SYN at once, after 1 s and after 3 s.
_CONNECT_S = 4.0
#: The timeout of the gateway's information, in seconds: it needs no lookup.
_INFO_S = 5.0
#: The size of the connection pool: more concurrent calls open new connections.
CONNECTIONS = 64
#: The timeout of a removal, in seconds (Kubernetes grants pods 30 s to end), and the poll
#: interval.
GONE_S, _INTERVAL_S = 90.0, 0.1
#: Kubernetes' message for a name whose function is being removed.
_BEING_REMOVED = "object is being deleted"
#: How long to retry a change that Kubernetes does not make, in seconds: it refuses changes that
#: meet its own.
_TAKEN_S = 2.0
#: faas-netes' message for replicas that it could not change; this client's for a function.
_NOT_SCALED, _NOT_UPDATED = "unable to update function deployment", "was not updated"
#: The fewest log lines to request: faasd returns the first lines of five minutes, but callers need
#: the last lines.
_LOGGED = 10_000

#: The hosts that stand for this machine, which no proxy reaches.
HERE = ("127.0.0.1", "localhost", "::1")

Answer = TypeVar("Answer")


def direct_if_here(url: str) -> dict[str, str]:
    """Return the proxies of requests to `url`: none to this machine, as for faas-cli."""
    with suppress(ValueError):  # the request will say what is wrong with the URL
        if (host := urlsplit(url).hostname) in HERE:
            return {"no_proxy": host}
    return {}


class Gateway:
    """An OpenFaaS gateway; thread-safe, and a context manager.

    Every method raises ChironError: ``no-gateway``, ``bad-gateway-url``, ``timeout``,
    ``unauthorised``, ``not-found``, or ``gateway-error`` with the gateway's own message.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        verify_tls: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        #: The gateway's URL, without a slash at its end.
        self.url = url.rstrip("/")
        self._credentials = credentials
        self._verify_tls = verify_tls
        self._timeout_s = timeout_s
        self._proxies = direct_if_here(self.url)
        self._session = requests.Session()
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=CONNECTIONS)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)
        if not verify_tls:
            urllib3.disable_warnings(InsecureRequestWarning)  # once for each request

    @property
    def pool_options(self) -> Mapping[str, Any]:
        """The options of urllib3 for connections with the same certificates and the same proxy."""
        settings = self._session.merge_environment_settings(
            self.url, dict(self._proxies), False, self._verify_tls, None
        )
        found: dict[str, Any] = {"cert_reqs": "CERT_NONE"}
        if verify := settings["verify"]:
            trusted = DEFAULT_CA_BUNDLE_PATH if verify is True else verify
            found = {"ca_cert_dir" if Path(trusted).is_dir() else "ca_certs": trusted}
        if proxy := select_proxy(self.url, settings["proxies"]):
            found |= {"proxy_url": proxy, "proxy_headers": HTTPAdapter().proxy_headers(proxy)}
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._session.close()

    def info(self) -> GatewayInfo:
        """Return provider and versions, which every OpenFaaS gateway reports.

        A server that does not answer soon is treated as no gateway.
        """
        try:
            return self._get(
                GatewayInfo, "/system/info", "information", min(_INFO_S, self._timeout_s)
            )
        except ChironError as error:
            if error.code == "timeout":
                raise ChironError("no-gateway", error.message, status=error.status) from None
            raise _not_a_gateway(self.url) if error.code == "not-found" else error from None

    def functions(self) -> list[FunctionStatus]:
        return self._get(list[FunctionStatus], "/system/functions", "list of functions")

    def describe(self, name: str) -> FunctionStatus:
        path = f"/system/function/{quote(name, safe='')}"
        return self._get(FunctionStatus, path, f"function {name}")

    def deploy(self, spec: FunctionSpec) -> None:
        """Update the function, or create it if the gateway does not have it.

        The gateway answers before the function is ready: see `chiron.openfaas.readiness`. If a
        function of that name is being removed, wait for its removal. faas-netes' Community Edition
        gets no labels of OpenFaaS Pro's scaling: it would refuse the function.
        """
        if not spec.labels.keys().isdisjoint(PRO_LABELS) and self.info().is_community_kubernetes:
            labels = {k: v for k, v in spec.labels.items() if k not in PRO_LABELS}
            spec = spec.model_copy(update={"labels": labels})
        began = time.monotonic()
        while True:
            try:
                self._update_or_create(spec)
                return
            except ChironError as error:
                waited_s = time.monotonic() - began
                if _BEING_REMOVED not in error.message:
                    if _NOT_UPDATED not in error.message or waited_s > _TAKEN_S:
                        raise
                elif waited_s > GONE_S:
                    see = describe_line(spec.service, spec.namespace)
                    error.add(f"it still is after {GONE_S:g} s: see {see}")
                    raise
            time.sleep(_INTERVAL_S)

    def remove(self, name: str) -> None:
        """Remove the function `name`; return once it is gone.

        Kubernetes answers at once and ends its pods afterwards. Raises ``not-removed`` if that
        takes longer than `GONE_S`.
        """
        body, deadline = {"functionName": name}, time.monotonic() + GONE_S
        try:
            self._system("DELETE", "/system/functions", what=f"function {name}", json=body)
        except ChironError as error:
            if error.code != "not-found" or _known(self, name) is None:
                raise  # otherwise it is already being removed
        while (function := _known(self, name)) is not None:
            if time.monotonic() > deadline:
                see = describe_line(name, function.namespace)
                message = (
                    f"function {name} is still there {GONE_S:g} s after its removal: see {see}"
                )
                raise ChironError("not-removed", message, functions=(name,), status=504)
            time.sleep(_INTERVAL_S)

    def scale(self, name: str, replicas: int) -> None:
        """Scale the function `name` to `replicas`, or as near as the gateway allows."""
        body = {"serviceName": name, "replicas": replicas}
        path = f"/system/scale-function/{quote(name, safe='')}"
        deadline = time.monotonic() + _TAKEN_S
        while True:
            try:
                self._system("POST", path, what=f"function {name}", json=body)
                return
            except ChironError as error:
                if _NOT_SCALED not in error.message or time.monotonic() > deadline:
                    raise
            time.sleep(_INTERVAL_S)

    def secret_names(self, namespace: str = "") -> set[str]:
        """Return the names of the secrets that functions may use."""
        within = {"namespace": namespace} if namespace else {}
        found = self._system("GET", "/system/secrets", what="secrets", params=within).content
        return {each.name for each in self._parsed(list[SecretName], found)}

    def ensure_secret(self, name: str, namespace: str = "", value: str | None = None) -> None:
        """Store `value` as the secret `name`; without a value, create a missing one at random."""
        within = {"namespace": namespace} if namespace else {}
        path, what = "/system/secrets", f"secret {name}"
        there = name in self.secret_names(namespace)
        if value is not None or not there:
            given = secrets.token_hex(32) if value is None else value
            body = {"name": name, "value": given, **within}
            try:
                self._system("PUT" if there else "POST", path, what=what, json=body)
            except ChironError:
                if there or name not in self.secret_names(namespace):
                    raise
                self.ensure_secret(name, namespace, value)  # another deployment has created it

    def invoke(
        self,
        name: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        path: str = "",
    ) -> Response:
        """Return the answer of the function `name` to `body`, whatever its status (404: none)."""
        sent = {**function_headers(body), **(headers or {})}
        return self._function("POST", name, path, timeout_s, data=body, headers=sent)

    def get(self, name: str, path: str, timeout_s: float | None = None) -> Response:
        """Return the answer of the function `name` to GET of `path`, whatever its status."""
        return self._function("GET", name, path, timeout_s)

    def options(
        self, name: str, headers: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> Response:
        """Return the answer of the function `name` to OPTIONS, whatever its status."""
        return self._function("OPTIONS", name, "", timeout_s, headers=headers)

    def logs(self, name: str, tail: int = 100) -> list[LogLine]:
        """Return the last `tail` lines that the replicas of the function `name` wrote, by time."""
        asked = max(tail, _LOGGED)
        params = {"name": name, "follow": "false", "tail": str(asked)}
        response = self._system("GET", "/system/logs", what=f"function {name}", params=params)
        lines = [line for line in response.content.splitlines() if line.strip()]
        found = self._parsed(list[LogLine], b"[%s]" % b",".join(lines))
        return sorted(found, key=lambda line: line.moment)[-tail:]

    def _update_or_create(self, spec: FunctionSpec) -> None:
        what = f"function {spec.service}"
        body = spec.body()
        try:
            answer = self._system("PUT", "/system/functions", what=what, json=body)
        except ChironError as error:
            if error.code != "not-found":
                raise
            self._system("POST", "/system/functions", what=what, json=body)
            return
        # faas-netes answers 200 to an update that failed, and 202 to one that it made; faasd
        # answers 200 to each, and tells another name of the image.
        if answer.status_code != requests.codes.ok or not self.info().on_kubernetes:
            return
        if (now := _known(self, spec.service)) is None or not now.has_fields_of(spec):
            raise ChironError(
                "gateway-error",
                f"gateway {self.url} takes function {spec.service}, but it {_NOT_UPDATED}: see "
                "kubectl -n openfaas logs deploy/gateway -c faas-netes",
                functions=(spec.service,),
                status=502,
            )

    def _system(
        self,
        method: str,
        path: str,
        *,
        what: str,
        params: Mapping[str, str] | None = None,
        json: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> Response:
        """Call the gateway's own API about `what`, authenticated; any failure raises an error."""
        response = self._send(method, path, self._sign, timeout_s, params=params, json=json)
        if response.ok:
            return response
        raise self._failure(response, what)

    def _function(
        self, method: str, name: str, path: str, timeout_s: float | None, **content: Any
    ) -> Response:
        """Call a function, without the gateway's credentials; return any status."""
        place = f"/function/{quote(name, safe='')}{path}"
        return self._send(method, place, _unsigned, timeout_s, **content)

    def _send(
        self, method: str, path: str, auth: Any, timeout_s: float | None, **content: Any
    ) -> Response:
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            return self._session.request(
                method,
                self.url + path,
                auth=auth,
                timeout=(min(_CONNECT_S, limit_s), limit_s),
                verify=self._verify_tls,
                proxies=self._proxies,
                # A redirected POST would arrive as a GET without its body.
                allow_redirects=method == "GET",
                **content,
            )
        except requests.exceptions.SSLError as error:
            message = f"TLS with gateway {self.url} failed ({error}): mend it, or --tls-no-verify"
            raise ChironError("no-gateway", message, status=503) from None
        except requests.ConnectionError:  # includes the timeout of connecting
            message = (
                f"no OpenFaaS gateway answers at {self.url}: start it (chiron serve starts the "
                "embedded one), name another with -g or OPENFAAS_URL, or give --local to a verb "
                "that takes it"
            )
            raise ChironError("no-gateway", message, status=503) from None
        except requests.Timeout:
            message = (
                f"gateway {self.url} did not answer {method} {path} within {limit_s:g} s: check "
                "-g or OPENFAAS_URL, or restart it"
            )
            raise ChironError("timeout", message, status=504) from None
        except (requests.RequestException, ValueError) as error:
            message = f"gateway URL {self.url!a} cannot be used: {error}"
            raise ChironError("bad-gateway-url", message) from None

    def _sign(self, request: PreparedRequest) -> PreparedRequest:
        if self._credentials is not None:
            request.headers["Authorization"] = self._credentials.authorization
        return request

    def _failure(self, response: Response, what: str) -> ChironError:
        reason = shown(response) or response.reason
        if response.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            return ChironError(
                "unauthorised",
                f"gateway {self.url} refuses the credentials ({reason}): run faas-cli login -g "
                f"{self.url}",
                status=401,
            )
        if response.status_code == requests.codes.not_found:
            message = f"gateway {self.url} has no {what}: {reason}"
            return ChironError("not-found", message, status=404)
        return ChironError(
            "gateway-error",
            f"gateway {self.url} refuses {what} with {response.status_code}: {reason}",
            status=400 if response.status_code < 500 else 502,
        )

    def _get(
        self, kind: type[Answer], path: str, what: str, timeout_s: float | None = None
    ) -> Answer:
        content = self._system("GET", path, what=what, timeout_s=timeout_s).content
        return self._parsed(kind, content)

    def _parsed(self, kind: type[Answer], content: bytes) -> Answer:
        try:
            return TypeAdapter(kind).validate_json(content)
        except ValidationError:
            raise _not_a_gateway(self.url) from None


def _not_a_gateway(url: str) -> ChironError:
    message = f"what answers at {url} is not an OpenFaaS gateway: check -g or OPENFAAS_URL"
    return ChironError("no-gateway", message, status=502)


def _unsigned(request: PreparedRequest) -> PreparedRequest:
    """Send no credentials, not even those in ~/.netrc for the gateway's host."""
    return request


def _known(gateway: Gateway, name: str) -> FunctionStatus | None:
    try:
        return gateway.describe(name)
    except ChironError as error:
        if error.code != "not-found":
            raise
        return None
