"""The wrap runtime: runs the functions of one wrap as threads, processes and remote wraps."""
