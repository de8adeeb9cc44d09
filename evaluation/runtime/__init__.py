"""What the wrap runtime costs, in the path of every request, measured in one run."""
