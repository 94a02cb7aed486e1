"""The cases that scripts/test-gpu runs on a GPU, their order, and the pages of their results."""
