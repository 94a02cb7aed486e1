"""Runs the steps of a plan that move values to the host and back (docs/offload.md)."""
