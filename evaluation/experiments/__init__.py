"""Computes results from the journals of a run: the metrics of the paper's figures and more."""
