"""Quality and speed of schedules: for a published testbed, at random, and against all plans."""
