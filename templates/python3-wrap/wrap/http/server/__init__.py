"""The HTTP server of a wrap, and of the runner of plain handlers, which has this package too."""
