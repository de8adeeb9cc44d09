"""Makes the review's text safe to show; only computes."""

import html
import json


def handle(req: str) -> str:
    """Return the text, escaped for HTML, without needless white space."""
    return json.dumps({"text": html.escape(" ".join(json.loads(req)["text"].split()))})
