"""Training with Inductor within a memory budget: its own code replayed before it runs."""
