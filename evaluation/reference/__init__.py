"""The reference executor: a slow and simple program whose answers deployments have to equal."""
