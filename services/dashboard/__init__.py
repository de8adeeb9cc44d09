"""The dashboard at ``/``: a workflow as a graph, its plan at once, and the jobs."""
