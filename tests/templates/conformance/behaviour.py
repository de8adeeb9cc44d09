"""What a behaviour is: requests to a handler, and what of the answers is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Where the handler finds the keep-alive server of the tests.
URL = "CONFORMANCE_URL"


@dataclass(frozen=True)
class Request:
    """A request of the handler."""

    body: str | bytes = ""
    method: str = "POST"
    path: str = "/"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Behaviour:
    """Requests, one after another or `at_once`, and what is compared of their answers."""

    requests: tuple[Request, ...]
    at_once: bool = False
    #: Whether only the statuses count, and how many of the bodies are different.
    varies: bool = False


@dataclass(frozen=True)
class Family:
    """The behaviours of one handler, by their names."""

    style: str
    handler: str
    behaviours: Mapping[str, Behaviour]
    #: The files of the function's folder besides handler.py.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Environment variables of its server.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Whether the headers of its answers are compared too.
    headers: bool = False


def one(*requests: Request) -> Behaviour:
    """`requests` one after another."""
    return Behaviour(requests)


def asked(expressions: str) -> dict[str, Behaviour]:
    """A behaviour for each line, an expression that the handler answers with the value of."""
    lines = [line.strip() for line in expressions.strip().split("\n")]
    return {line: one(Request(line)) for line in lines if line and not line.startswith("# ")}


def varying(expressions: str) -> dict[str, Behaviour]:
    """For each expression, answers one after another and at once, which are all different."""
    found = {}
    for name, behaviour in asked(expressions).items():
        four = behaviour.requests * 4
        found[name] = Behaviour(four, varies=True)
        found[f"{name} at once"] = Behaviour(four, at_once=True, varies=True)
    return found
