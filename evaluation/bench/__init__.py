"""The test bench: variants, their set-up, their deployment, and the journals of a run."""
