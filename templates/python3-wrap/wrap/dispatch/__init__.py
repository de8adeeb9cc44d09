"""The imperative shell of `wrap.core`: performs its commands, and sends it events."""
