"""A function that does nothing: the same in the bare template and in wraps."""


def handle(req: str) -> str:
    """Return `req`."""
    return req
