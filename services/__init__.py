"""The web services: the verbs of the command line over HTTP, with jobs that outlive a restart."""
