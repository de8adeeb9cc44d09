"""HTTP to a gateway over kept-alive connections; what goes wrong becomes a ChironError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from openfaas.credentials import Credentials
from workflow.errors import ChironError

#: Answers above this are cut in messages, in characters.
_SHOWN = 300


class Transport:
    """One gateway; safe to share between threads, each of which gets a connection of the pool."""

    def __init__(
        self,
        url: str,
        credentials: Credentials | None,
        *,
        verify_tls: bool,
        timeout_s: float,
        connections: int,
    ) -> None:
        self.url = url.rstrip("/")
        self._credentials = credentials
        self._verify_tls = verify_tls
        self._timeout_s = timeout_s
        self._session = requests.Session()
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=connections)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def system(
        self,
        method: str,
        path: str,
        *,
        what: str,
        params: Mapping[str, str] | None = None,
        json: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> requests.Response:
        """An authenticated call of the gateway's own API about `what`; any failure is an error."""
        response = self._send(method, path, self._sign, timeout_s, params=params, json=json)
        if response.ok:
            return response
        raise self._failure(response, what)

    def function(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> requests.Response:
        """A call of a function, which never sees the gateway's credentials; any status is fine."""
        return self._send(method, path, _unsigned, timeout_s, data=body, headers=headers)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _send(
        self, method: str, path: str, auth: Any, timeout_s: float | None, **content: Any
    ) -> requests.Response:
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            return self._session.request(
                method,
                self.url + path,
                auth=auth,
                timeout=limit_s,
                verify=self._verify_tls,
                # A redirected POST would arrive as a GET without its body.
                allow_redirects=method == "GET",
                **content,
            )
        except requests.Timeout:
            message = f"gateway {self.url} did not answer {method} {path} within {limit_s:g} s"
            raise ChironError("timeout", message, status=504) from None
        except requests.exceptions.SSLError as error:
            message = f"TLS with gateway {self.url} failed ({error}): mend it, or --tls-no-verify"
            raise ChironError("no-gateway", message, status=503) from None
        except requests.ConnectionError:
            raise no_gateway(self.url) from None
        except (requests.RequestException, ValueError) as error:
            message = f"gateway URL {self.url!a} cannot be used: {error}"
            raise ChironError("bad-gateway-url", message) from None

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._credentials is not None:
            request.headers["Authorization"] = self._credentials.authorization
        return request

    def _failure(self, response: requests.Response, what: str) -> ChironError:
        if response.status_code == requests.codes.unauthorized:
            return ChironError(
                "unauthorised",
                f"gateway {self.url} refuses the credentials: run faas-cli login -g {self.url}",
                status=401,
            )
        reason = " ".join(response.text.split())[:_SHOWN] or response.reason
        if response.status_code == requests.codes.not_found:
            message = f"gateway {self.url} has no {what}: {reason}"
            return ChironError("not-found", message, status=404)
        return ChironError(
            "gateway-error",
            f"gateway {self.url} refuses {what} with {response.status_code}: {reason}",
            status=400 if response.status_code < 500 else 502,
        )


def no_gateway(url: str) -> ChironError:
    """The error where nothing answers at `url`."""
    message = (
        f"no OpenFaaS gateway answers at {url}: start it (chiron serve starts the embedded one), "
        "name another with -g or OPENFAAS_URL, or give --local to a verb that takes it"
    )
    return ChironError("no-gateway", message, status=503)


def _unsigned(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No credentials, not even those that ~/.netrc has for the gateway's host."""
    return request
