"""The three tasks of a workflow in one function: to ask for an output, to make it, to take it.

It costs nothing itself: the output is there when it is imported.
"""

_SIZE = 10_000_000
LARGE = '{"data": "' + "x" * (_SIZE - 12) + '"}'
_SMALL = '{"data": ""}'
#: Text that takes one to four bytes a character, and what JSON escapes; made only when asked for.
_MIXED = 'a\u00e9\u20ac\U0001f600"\\\n'


def handle(req: str) -> str:
    """``?NAME``: the name. A name: the output. An output: its length, or itself if ``whole``."""
    if req.startswith("?"):
        return req[1:]
    if req == "large":
        return LARGE
    if req == "small":
        return _SMALL
    if req == "whole":
        return "whole:" + _MIXED * (_SIZE // len(_MIXED.encode()))
    return req if req.startswith("whole:") else str(len(req))
