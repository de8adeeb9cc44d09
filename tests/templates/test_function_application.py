"""Functions that look at Flask's application have one each, as alone."""

from __future__ import annotations

CONFIGURES = """
    from flask import current_app, g

    def handle(req):
        current_app.json.sort_keys = False
        current_app.config["CURRENCY"] = "EUR"
        current_app.jinja_env.globals["shop"] = "ours"
        return current_app.json.response({"b": 1, "a": current_app.config["CURRENCY"]})
"""
READS = """
    from flask import current_app, jsonify, render_template_string

    def handle(req):
        page = render_template_string("[{{ shop }}]")
        return jsonify(b=2, a=current_app.config.get("CURRENCY"), page=page)
"""


def test_no_function_has_the_settings_of_anothers_application(start, wrap_image):
    handlers = {"configures": CONFIGURES, "reads": READS}
    image = wrap_image(handlers, [[0, 1]], inputs={0: None, 1: 0}, entry={"output": 1})
    server = start(image)
    for _ in range(3):
        assert server.request().text == '{"a":null,"b":2,"page":"[]"}\n'


SAVES = """
    from flask import current_app, session

    def handle(req):
        current_app.secret_key = "secret"
        if session.get("visits") is None and req == "first":
            return "not yet"
        session["visits"] = session.get("visits", 0) + 1
        return str(session["visits"])
"""


def test_a_session_is_saved_whatever_is_answered(start, wrap_image):
    server = start(wrap_image({"saves": SAVES}, entry={"output": 0}))
    assert server.request(body="first").text == "not yet"
    answer = server.request()
    assert (answer.text, answer.headers["Vary"]) == ("1", "Cookie")
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    assert cookie.startswith("session=")
    assert server.request(Cookie=cookie).text == "2"


SETS_UP = """
    from flask import current_app

    def handle(req):
        try:
            current_app.after_request(print)
        except AssertionError:
            return "refused"
"""


def test_an_application_cannot_be_set_up_by_its_requests(start, wrap_image):
    server = start(wrap_image({"sets": SETS_UP}, entry={"output": 0}))
    assert server.request().text == "refused"


def test_an_address_is_made_whole_where_the_handler_asks_for_it(start, wrap_image):
    handler = """
        from flask import redirect
        def handle(req):
            answer = redirect("/there?a=1")
            answer.autocorrect_location_header = True
            return answer
    """
    server = start(wrap_image({"one": handler}, entry={"output": 0}))
    answer = server.request(Host="shop.example")
    assert answer.headers["Location"] == "http://shop.example/there?a=1"
