"""Baselines of the predictor: models that learn latencies from measured plans."""
