"""What a wrap shows of itself: metrics, spans, timelines, logs, the GIL probe."""
