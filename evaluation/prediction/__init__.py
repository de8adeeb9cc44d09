"""The accuracy of latency predictions: random plans, measured and predicted."""
