"""A launcher on an embedded gateway with a home of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.images import build_local
from gateway.embedded import EmbeddedGateway
from generator.launcher import Launcher
from openfaas.client import Gateway


@pytest.fixture
def launcher(tmp_path_factory, monkeypatch) -> Iterator[Launcher]:
    monkeypatch.setenv("CHIRON_HOME", str(tmp_path_factory.mktemp("home")))
    with EmbeddedGateway() as embedded, Gateway(embedded.url) as gateway:
        yield Launcher(gateway, build_local)
