"""Placeholder: the handler folder of stack.yaml takes this folder's place."""


def handle(req: str) -> str:
    """Answer the request's body.

    Args:
        req: the body as text.
    """
    return req
