"""What runs on the machine: each measurement yields rounds, in which every variant has its turn."""
