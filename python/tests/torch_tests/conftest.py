"""These tests need PyTorch; without it they are not collected (scripts/test python installs it)."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def _installed(tmp_path_factory):
    """Makes the metadata of the wheel, as pip installs it, and puts it beside the package.

    PyTorch finds backends by entry points, which are in the metadata, and looks for them once.
    """
    from scikit_build_core import build

    folder = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        build.prepare_metadata_for_build_wheel(str(folder))
    sys.path.append(str(folder))


@pytest.fixture(scope="session", autouse=True)
def _kernels(tmp_path_factory):
    """Gives all tests one folder of compiled kernels, which is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    """Makes each test compile anew, and gives it its own cache of plans."""
    import torch

    torch._dynamo.reset()
    torch.set_num_threads(1)
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path / "plans"))
