"""Wraps that are deployed again one by one, as by faas-cli: no request meets two versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chiron.pipeline.deploy import deploy
from chiron.scheduler.choices import Choices

_CODE = """\
def handle(req):
    return req + " {version}"
"""
#: How often the code changes.
_TIMES = 3


@pytest.mark.slow
@pytest.mark.parametrize("path", ["auto", "gateway"])
def test_each_answer_is_of_one_version_while_changed_code_is_deployed(
    path, watcher, place, pair, load, tmp_path
):
    made = watcher()
    choices = Choices(path=path)
    request = replace(made.request, profile=made.profile(), samples=1, choices=choices, check=False)

    def deploy_version(version: int) -> None:
        for name in ("first", "second"):
            code = pair.path / "functions" / name / "handler.py"
            code.write_text(_CODE.format(version=version))
        deploy(request, made.launcher, tmp_path / f"out-{version}", lambda line: None)

    deploy_version(0)
    assert len(place.names()) == 2
    with load:
        load.await_each()
        for version in range(1, _TIMES + 1):
            deploy_version(version)
            load.await_each()
    assert load.answers == {(200, f"x {version} {version}") for version in range(_TIMES + 1)}
