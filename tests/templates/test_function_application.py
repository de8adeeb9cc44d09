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
