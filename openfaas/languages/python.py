"""Python handlers, as the templates python3-flask and python3-http call them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handler_folder import STYLES, Style, bindings
from chiron.openfaas.handlers import Extra, Handler, fault, handler_folder, there
from chiron.openfaas.languages.language import Language
from chiron.openfaas.stack import StackFunction

_PARAMETERS: dict[Style, tuple[str, ...]] = {
    "flask": ("req",),
    "http": ("event", "context"),
    "http-debian": ("event", "context"),
}


class Python(Language):
    """A handler.py that defines ``handle``."""

    styles: ClassVar = STYLES
    start = "python index.py"
    usual = ("python3 index.py",)

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        """See `Language.handler`; raises ``bad-handler`` if ``handle`` cannot be called."""
        style = STYLES[function.lang]
        place = handler_folder(name, function, folder, "with its handler.py")
        code = place / "handler.py"
        if not there(code.is_file):
            message = f"function {name}: handler.py missing at {place}: create it or mend handler"
            raise fault("no-handler", name, "handler", message)
        reason = _unusable(code, style)
        if reason:
            raise fault("bad-handler", name, "handler", f"function {name}: {code} {reason}")
        return Handler(name, place, style, extra=extra)


PYTHON = Python()


def _unusable(code: Path, style: Style) -> str | None:
    """Why ``handle`` in the file `code` cannot be called in `style`, and the mend."""
    wanted = f"def handle({', '.join(_PARAMETERS[style])})"
    try:
        tree = ast.parse(code.read_bytes(), filename=str(code))
        definitions = [found for found in bindings(tree) if found[0] == "handle"]
    except (SyntaxError, ValueError) as error:
        at = error.lineno if isinstance(error, SyntaxError) else None
        line = "" if at is None else f", line {at}"
        return f"is not Python{line}: {getattr(error, 'msg', error)}"
    except (RecursionError, MemoryError):
        return "is nested too deeply"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not definitions:
        return f"has no handle: define {wanted}"
    definition = definitions[-1][1]
    if isinstance(definition, ast.AsyncFunctionDef):
        return f"has an async handle, which the template does not await: define {wanted}"
    count = len(_PARAMETERS[style])
    if isinstance(definition, ast.FunctionDef) and not _takes(definition.args, count):
        return f"has a handle with other parameters than its lang calls: define {wanted}"
    return None


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Whether a function with these parameters can be called with `count` positional values."""
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    free_keywords = all(default is not None for default in arguments.kw_defaults)
    return required <= count and (positional >= count or bool(arguments.vararg)) and free_keywords
