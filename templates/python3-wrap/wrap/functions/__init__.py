"""Functions: how they are imported, how they are called, what they see."""
