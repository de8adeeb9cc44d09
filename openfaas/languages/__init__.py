"""The languages of functions that run inside wraps, a module each.

A task may use any other function, too. It stays a separate OpenFaaS function and is *called*.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chiron.openfaas.handler_folder import meant
from chiron.openfaas.handlers import Handler, extra_of, fault
from chiron.openfaas.languages.command import COMMAND
from chiron.openfaas.languages.java import JAVA
from chiron.openfaas.languages.language import Language
from chiron.openfaas.languages.node import NODE
from chiron.openfaas.languages.python import PYTHON
from chiron.openfaas.stack import StackFile, StackFunction
from chiron.workflow.names import shown

LANGUAGES: tuple[Language, ...] = (PYTHON, NODE, JAVA, COMMAND)
#: The values of `lang` of functions that run inside wraps.
LANGS = tuple(lang for language in LANGUAGES for lang in language.styles)


def language_of(function: StackFunction) -> Language | None:
    """Return the language of `function`; None if no wrap runs it."""
    return None if function.outside else _of_lang(function.lang)


def kept_out(function: StackFunction) -> str:
    """Return the reason why no wrap runs `function`, with the language that may be meant."""
    lang = f"lang {function.lang or 'none'} runs in no wrap{meant(function.lang, LANGS)}"
    return function.outside or lang


def _of_lang(lang: str) -> Language | None:
    return next((each for each in LANGUAGES if lang in each.styles), None)


def settled(stack: StackFile, folder: Path) -> StackFile:
    """Mark the functions of `stack` that no wrap can run although their language allows it.

    Such a function is *called*, like a function of any other language.
    """
    functions = {}
    for name, function in stack.functions.items():
        language = _of_lang(function.lang)
        reason = language.outside(function, folder) if language else ""
        functions[name] = function.left_outside(reason)
    return stack.model_copy(update={"functions": functions})


def called_in(stack: StackFile, names: Iterable[str]) -> tuple[str, ...]:
    """Return those `names` that are called: no wrap runs them, or they are not in `stack`."""
    return tuple(
        name
        for name in names
        if name not in stack.functions or language_of(stack.functions[name]) is None
    )


def find_handler(stack: StackFile, name: str, folder: Path) -> Handler:
    """Return the handler of the function `name` of the stack.yaml in `folder`, checked but not run.

    Raises ``unknown-function``, ``bad-lang`` if no wrap runs it, ``bad-copy``, or the errors of
    `Language.handler`, with the function's name.
    """
    function = stack.function(name)
    language = language_of(function)
    if language is None:
        known = function.outside or f"use one of {', '.join(LANGS)}"
        message = f"function {name}: lang {shown(function.lang)} runs in no wrap: {known}"
        raise fault("bad-lang", name, "lang", message)
    return language.handler(name, function, folder, extra_of(stack, folder))
