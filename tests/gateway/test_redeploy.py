"""A redeployment replaces a function without losing a request."""

from __future__ import annotations

import requests

TIMEOUT_S = 60


def version(text: str) -> str:
    return f"""
        import time

        def handle(request):
            time.sleep(0.01)
            return {text!r}
    """


def put(function, **fields) -> int:
    body = {"service": function.name, "image": function.name, **fields}
    url = f"{function.gateway}/system/functions"
    return requests.put(url, json=body, timeout=TIMEOUT_S).status_code


def test_a_new_version_that_fails_leaves_the_old_one_serving(deploy, make_image, wait_until):
    function = deploy(version("old"))
    function.post()
    make_image(function.name, "raise RuntimeError('broken')\nhandle = None")
    assert put(function) == 202
    wait_until(lambda: "broken" in function.logs())
    assert function.post().text == "old"
    assert "availableReplicas" not in function.describe()


def test_a_good_version_replaces_a_failing_one(deploy, make_image, wait_until):
    function = deploy("raise RuntimeError('broken')\nhandle = None")
    assert function.post().status_code == 503
    make_image(function.name, version("new"))
    assert put(function) == 202
    assert function.post().text == "new"


def test_of_two_redeployments_in_a_row_the_last_one_wins(deploy, make_image, wait_until):
    function = deploy(version("old"))
    function.post()
    for text in ("newer", "newest"):
        make_image(function.name, version(text))
        assert put(function) == 202
    wait_until(lambda: function.post().text == "newest")


def test_a_function_keeps_its_image_version_until_it_is_deployed_again(deploy, make_image):
    code = """
        from pathlib import Path

        def handle(request):
            return Path("function/handler.py").read_text()
    """
    function = deploy(code)
    first = function.post().text
    make_image(function.name, code + "    # changed\n")
    make_image(function.name, code + "    # changed again\n")
    assert function.post().text == first
