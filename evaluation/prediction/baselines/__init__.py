"""What the predictor is compared with: models that learn latencies from measured plans."""
