"""The Redis of movie-review: started and filled with this function. No task of the workflow."""

from .dataset import PREFIX, VERSION, commands
from .server import serve

STORE = serve(PREFIX, VERSION, commands)


def handle(req: str) -> str:
    """Answer where the store is, or why there is none."""
    return STORE
