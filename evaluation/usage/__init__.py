"""What sandboxes use: CPU time and memory of their process trees."""
