"""Says what this machine lacks, and the line that mends it."""
