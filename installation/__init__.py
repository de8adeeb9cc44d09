"""Checks what this machine lacks, with the commands that fix it."""
