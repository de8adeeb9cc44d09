"""How good and how fast schedules are: on a published testbed, at random, and against all plans."""
