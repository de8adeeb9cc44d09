"""What rounds say: one module for every figure of the paper, pure functions of the journal."""
