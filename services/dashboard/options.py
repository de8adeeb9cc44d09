"""The choices about a plan, as fields generated from the model of the choices."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from dash import ALL, dcc, html
from dash.dependencies import Wildcard
from dash.development.base_component import Component

from chiron.scheduler.choices import Choices

#: The JSON schema of each choice.
_CHOICES: dict[str, dict[str, Any]] = Choices.model_json_schema()["properties"]
_YES_OR_NO = ("no", "yes")


def identity(name: str | Wildcard = ALL) -> dict[str, Any]:
    """Return the id of the field of a choice, or the pattern of all."""
    return {"type": "choice", "field": name}


def field(name: str) -> Component:
    """Return the field of a choice, with its label and its description."""
    choice = _CHOICES[name]
    is_flag = choice.get("type") == "boolean"
    values = _YES_OR_NO if is_flag else choice.get("enum", ())
    default = _YES_OR_NO[choice["default"]] if is_flag else choice["default"]
    label, about = name.replace("_", " ").capitalize().replace("mib", "MiB"), f"about-{name}"
    labelled = f"choose-{name}"
    if values:  # assets/selects.js keeps the select and the input equal
        listed = [html.Option(value, value=value, selected=value == default) for value in values]
        tied: dict[str, Any] = {"data-for": _as_text(identity(name)), "aria-describedby": about}
        entries: list[Component] = [
            html.Select(listed, id=labelled, **tied),
            dcc.Input(id=identity(name), type="hidden", value=default),
        ]
    else:
        labelled = _as_text(identity(name))
        options: dict[str, Any] = {"type": "number", "step": "any", "debounce": True}
        entries = [dcc.Input(id=identity(name), value=default, **options)]
    row = html.Div([html.Label(label, htmlFor=labelled), *entries], className="row")
    return html.Div([row, html.Small(choice.get("description", ""), id=about)], className="choice")


def fields(besides: Collection[str]) -> list[Component]:
    """Return the fields of all choices except `besides`, in the order of the model."""
    return [field(name) for name in _CHOICES if name not in besides]


def chosen(values: Iterable[Any], ids: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the choices from the fields of `ids`; an empty field leaves the default."""
    named = {each["field"]: value for each, value in zip(ids, values, strict=True)}
    return {
        name: value == _YES_OR_NO[True] if _CHOICES[name].get("type") == "boolean" else value
        for name, value in named.items()
        if value not in (None, "")
    }


def slo_of(slider_ms: float | str | None) -> str:
    """Return the slider's SLO in the form of requests; after a key press its value is text."""
    return f"{float(slider_ms or 0):.1f}ms"


def _as_text(given: dict[str, Any]) -> str:
    """Return an id as Dash writes it into the page."""
    return json.dumps(given, sort_keys=True, separators=(",", ":"))
