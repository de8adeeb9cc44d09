"""The project's function through which Maps of a state machine use an S3-compatible store.

A workflow that needs it has it like a function of its own. A function of the same name in
stack.yaml replaces it.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from chiron.openfaas.stack import StackFile, StackFunction
from chiron.templates import TEMPLATES
from chiron.workflow.asl_resources import STORE_FUNCTION

#: The secret with a store's password, and the variable from which `chiron` reads the password.
SECRET, PASSWORD = "chiron-store", "CHIRON_STORE_PASSWORD"
#: The function's variable with the store's URL.
_VARIABLE = "chiron_s3"
_HANDLER = str(TEMPLATES / "s3")


def with_store_function(stack: StackFile, functions: Collection[str], url: str = "") -> StackFile:
    """Add the function of the store at `url` to `stack`, if it is one of `functions`."""
    if STORE_FUNCTION not in functions or STORE_FUNCTION in stack.functions:
        return stack
    registries = {each.image.rpartition("/")[0] for each in stack.functions.values()}
    registry = registries.pop() if len(registries) == 1 else ""
    made = StackFunction(
        lang="python3-http",
        handler=_HANDLER,
        image=f"{registry}/{STORE_FUNCTION}:latest".lstrip("/"),
        environment={_VARIABLE: url} if url else {},
        secrets=(SECRET,) if urlsplit(url).username else (),
    )
    return stack.model_copy(update={"functions": {**stack.functions, STORE_FUNCTION: made}})


def reads_store(stack: StackFile) -> bool:
    """Return whether `stack` has this project's function, not one of the user's with its name."""
    return STORE_FUNCTION in stack.functions and (
        stack.functions[STORE_FUNCTION].handler == _HANDLER
    )
