"""The rules: pure functions and state machines, without clock, thread, socket or file."""
