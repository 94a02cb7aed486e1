"""Estimates the memory of training a model without running it. See docs/estimate.md."""
