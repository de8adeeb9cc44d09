"""Shortens the links of the text and makes it safe to show; only computes."""

import hashlib
import html
import json
import re
import string

LINK = re.compile(r"https?://[^\s<>\"]+")
ALPHABET = string.digits + string.ascii_letters
CODE_LENGTH = 10


def shorten(link: str) -> str:
    """Return the short form of a link, derived from the link by a hash."""
    number = int.from_bytes(hashlib.sha256(link.encode()).digest(), "big")
    code = ""
    for _ in range(CODE_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        code += ALPHABET[digit]
    return f"http://short/{code}"


def handle(req: str) -> str:
    """Return the text, escaped for HTML and with short links, and the targets of the links."""
    text = json.loads(req)["text"]
    links = {link: shorten(link) for link in dict.fromkeys(LINK.findall(text))}
    parts = [links.get(part) or html.escape(part) for part in re.split(f"({LINK.pattern})", text)]
    urls = [{"shortened": short, "expanded": link} for link, short in links.items()]
    return json.dumps({"text": "".join(parts), "urls": urls})
