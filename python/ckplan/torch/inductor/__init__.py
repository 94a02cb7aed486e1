"""Training with Inductor within a memory budget: by replaying its generated code before it runs."""
