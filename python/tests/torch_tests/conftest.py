"""These tests need PyTorch; without it they are not collected (scripts/test python installs it)."""

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    """Makes each test compile anew, and gives it its own cache of plans."""
    import torch

    torch._dynamo.reset()
    torch.set_num_threads(1)
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path / "plans"))
