"""Recordings of PyTorch's allocator (``torch.cuda.memory._dump_snapshot``), read and compared."""
