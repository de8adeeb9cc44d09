"""What is measured and where: variants, their set-up, their deployment, the journal of a run."""
