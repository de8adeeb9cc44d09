"""Requests whose bodies are parsed as strictly as artefacts, sent as JSON or as a form."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from flask import Request

from chiron.workflow.documents import parse_json
from chiron.workflow.errors import ChironError

_MIB = 1024 * 1024
#: The largest body of JSON in bytes.
JSON_LIMIT = _MIB
#: The largest form in bytes; it may have an archive of a workflow folder.
FORM_LIMIT = 64 * _MIB
#: The part of a form that is an archive; its other files are JSON documents.
ARCHIVE = "archive"
FORM = "multipart/form-data"
#: The header that makes a request safe to repeat.
KEY_HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


class StrictRequest(Request):
    """A request whose body is strict JSON, or a form whose fields make up a JSON object."""

    def __init__(self, environ: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(environ, *arguments, **options)
        self.max_content_length = FORM_LIMIT if self.is_form else JSON_LIMIT

    @property
    def is_form(self) -> bool:
        return self.mimetype == FORM

    @property
    def idempotency_key(self) -> str | None:
        """The client's key for the request, None without; raises ``bad-request``."""
        key = self.headers.get(KEY_HEADER)
        if key is not None and not _KEY.fullmatch(key):
            message = f"{KEY_HEADER} has to be 1 to 255 visible characters of ASCII"
            raise ChironError("bad-request", message)
        return key

    @property
    def fingerprint(self) -> str:
        """A digest of the request's content, the same for a form with any delimiter."""
        digest = hashlib.sha256(self.path.encode())
        if self.is_form:
            digest.update(self.get_json().encode())
            if (archive := self.files.get(ARCHIVE)) is not None:
                archive.stream.seek(0)
                while chunk := archive.stream.read(_MIB):
                    digest.update(chunk)
        else:
            digest.update(self.get_data())
        return digest.hexdigest()

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """Return the body as the text of checked JSON.

        It is text because flask-openapi3 validates text in pydantic's JSON mode. Only in that mode
        do strict models accept arrays for tuples.

        Raises ``bad-json`` or ``duplicate-key``.
        """
        if self.is_form:
            return json.dumps(self._fields())
        body = self.get_data()
        parse_json(body, "the body")
        return _text(body, "the body")

    def _fields(self) -> dict[str, Any]:
        parts = [(name, _field(name, text)) for name, text in self.form.items(multi=True)]
        for name, file in self.files.items(multi=True):
            if name != ARCHIVE:
                what = f"the part {name!a}"
                parts.append((name, parse_json(_text(file.read(), what), what)))
        names = [name for name, _ in parts]
        if len(set(names)) < len(names) or len(self.files.getlist(ARCHIVE)) > 1:
            raise ChironError("duplicate-key", "a part of the form is there twice: send each once")
        return dict(parts)


def _field(name: str, text: str) -> Any:
    """Return a field that is a JSON number, object or list parsed, other text as a string."""
    try:
        return parse_json(text, f"the part {name!a}")
    except ChironError:
        if text.lstrip().startswith(("{", "[")):
            raise
        return text


def _text(body: bytes, what: str) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ChironError("bad-json", f"{what} is not UTF-8") from None
