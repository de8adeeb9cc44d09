"""How well latencies are predicted: plans at random, measured and predicted."""
