"""From a workflow and an SLO to a measured deployment, as one call."""
