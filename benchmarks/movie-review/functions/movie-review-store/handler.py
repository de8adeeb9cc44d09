"""Starts and fills the Redis of movie-review at import. Not a task of the workflow."""

from .dataset import PREFIX, VERSION, commands
from .server import serve

STORE = serve(PREFIX, VERSION, commands)


def handle(req: str) -> str:
    """Return the store's URL, or why it is missing."""
    return STORE
