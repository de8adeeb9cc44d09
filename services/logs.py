"""The server's log: lines of JSON with the ids of requests and jobs, without content of users.

An exception's message may repeat a payload or a secret. So the log has only the type of an
exception and its places in the code. Paths are logged as the route that they match.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

#: Fields of a log call's ``extra`` that become fields of the line.
FIELDS = ("request_id", "method", "route", "status", "ms", "job", "kind", "code")
_LOGGERS = ("services", "waitress")


class JsonLines(logging.Formatter):
    """One JSON object per record: at, level, event, its fields, and where it failed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its line end."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.name == "services" else record.msg,
        }
        line |= {field: getattr(record, field) for field in FIELDS if hasattr(record, field)}
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _places(record.exc_info[1])
        return json.dumps(line)


def configure_logs() -> None:
    """Write the log of the services, and of waitress, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a queue is normal


def _places(error: BaseException) -> list[str]:
    """Return the types of an exception and its causes, each with its calls, innermost last."""
    places: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        places.append(type(seen).__name__)
        frames = traceback.extract_tb(seen.__traceback__)
        places += [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        seen = seen.__cause__ or seen.__context__
    return places
