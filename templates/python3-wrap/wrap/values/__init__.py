"""The values that tasks pass on: in memory, in shared memory, on disk."""
