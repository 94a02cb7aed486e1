"""Reads memory snapshots (``torch.cuda.memory._dump_snapshot``) and compares them with plans."""
