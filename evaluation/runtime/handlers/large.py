"""The three tasks of a workflow in one function: to ask for an output, to make it, to measure it.

The tasks themselves cost nothing: the import makes the output.
"""

_SIZE = 10_000_000
LARGE = '{"data": "' + "x" * (_SIZE - 12) + '"}'
_SMALL = '{"data": ""}'
#: Text of one to four bytes a character, and characters that JSON escapes; repeated on request.
_MIXED = 'a\u00e9\u20ac\U0001f600"\\\n'


def handle(req: str) -> str:
    """Return the name of ``?NAME``, the output of a name, or an output's length (or the whole)."""
    if req.startswith("?"):
        return req[1:]
    if req == "large":
        return LARGE
    if req == "small":
        return _SMALL
    if req == "whole":
        return "whole:" + _MIXED * (_SIZE // len(_MIXED.encode()))
    return req if req.startswith("whole:") else str(len(req))
