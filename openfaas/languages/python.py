"""Python handlers, as the templates python3-flask and python3-http call them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handler_folder import STYLES, Style, bindings, handler_file
from chiron.openfaas.handlers import Extra, Handler, fault, handler_folder, there
from chiron.openfaas.languages.language import Language
from chiron.openfaas.stack import StackFunction
from chiron.workflow.python_code import syntax_tree

_PARAMETERS: dict[Style, tuple[str, ...]] = {
    "flask": ("req",),
    "http": ("event", "context"),
    "http-debian": ("event", "context"),
}
#: The usual modules of handlers for other platforms, and the handlers' parameters.
_ELSEWHERE = ("lambda_function.py", "function.py", "app.py", "index.py", "main.py", "__main__.py")
_OTHERS = {("event", "context"): " of AWS Lambda", ("event",): "", ("args",): "", ("params",): ""}


class Python(Language):
    """A handler.py, or a package ``handler``, that defines ``handle``."""

    styles: ClassVar = STYLES
    start = "python index.py"
    usual = ("python3 index.py",)

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        """See `Language.handler`; raises ``bad-handler`` if ``handle`` cannot be called."""
        style = STYLES[function.lang]
        place = handler_folder(name, function, folder, "with its handler.py")
        if not there(lambda: handler_file(place).is_file()):
            named = (each for each in _ELSEWHERE if there((place / each).is_file))
            renamed = (f"rename {each} to handler.py" for each in named)
            mend = next(renamed, "create it or mend handler")
            message = f"function {name}: handler.py missing at {place}: {mend}"
            raise fault("no-handler", name, "handler", message)
        code = handler_file(place)
        reason = _unusable(code, style)
        if reason:
            raise fault("bad-handler", name, "handler", f"function {name}: {code} {reason}")
        return Handler(name, place, style, extra=extra)


PYTHON = Python()


def _unusable(code: Path, style: Style) -> str | None:
    """Return why ``handle`` in the file `code` cannot be called in `style`, and the fix."""
    wanted = f"def handle({', '.join(_PARAMETERS[style])})"
    try:
        tree = syntax_tree(code.read_bytes(), str(code))
        bound = dict(bindings(tree))
    except (SyntaxError, ValueError) as error:
        at = error.lineno if isinstance(error, SyntaxError) else None
        line = "" if at is None else f", line {at}"
        return f"is not Python{line}: {getattr(error, 'msg', error)}"
    except (RecursionError, MemoryError):
        return "is nested too deeply"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if "handle" not in bound:
        return f"has no handle: {_addition(bound, style)}"
    definition = bound["handle"]
    if isinstance(definition, ast.AsyncFunctionDef):
        return f"has an async handle, which the template does not await: define {wanted}"
    count = len(_PARAMETERS[style])
    if isinstance(definition, ast.FunctionDef) and not _takes(definition.args, count):
        return f"has a handle with other parameters than its lang calls: define {wanted}"
    return None


def _addition(bound: Mapping[str, ast.AST], style: Style) -> str:
    """Return the code to add to a module without a handle, calling another platform's if any."""
    wanted = f"def handle({', '.join(_PARAMETERS[style])})"
    for name, each in bound.items():
        taken = tuple(a.arg for a in each.args.args) if isinstance(each, ast.FunctionDef) else ()
        if taken in _OTHERS:
            flask, more = style == "flask", len(taken) > 1
            given = f"json.loads({'req' if flask else 'event.body'})"
            given += (", None" if flask else ", context") * more
            answer = f"json.dumps({name}({given}))"
            body = answer if flask else f'{{"body": {answer}}}'
            return f"to call {name}{_OTHERS[taken]}, import json and add {wanted}: return {body}"
    return f"define {wanted}"


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Return whether a function with these parameters accepts `count` positional values."""
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    free_keywords = all(default is not None for default in arguments.kw_defaults)
    return required <= count and (positional >= count or bool(arguments.vararg)) and free_keywords
