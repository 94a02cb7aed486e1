"""What scripts/test-gpu runs on a GPU, in which order, and what it makes of the results."""
