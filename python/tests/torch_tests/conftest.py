"""These tests need PyTorch; without it they are left out (scripts/test python brings it)."""

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    """Each test compiles anew, and keeps its plans to itself."""
    import torch

    torch._dynamo.reset()
    torch.set_num_threads(1)
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path / "plans"))
