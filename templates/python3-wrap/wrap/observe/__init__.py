"""The observability of a wrap: metrics, spans, timelines, logs, the GIL probe."""
