"""Tests the annotations of the package, as a user's type checker reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ckplan
import ckplan.torch
import pytest
import torch
from torch import nn

pytest.importorskip("mypy")

ROOT = Path(__file__).parents[3]
# mypy reads all of PyTorch, and keeps what it has found for later runs.
CACHE = ROOT / "build" / "python" / "mypy"


def faults(*paths: Path) -> str:
    """Runs mypy on files with the checkout's package, and returns its output."""
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={CACHE}", "--no-error-summary"]
    done = subprocess.run(
        [*command, *map(str, paths)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_package_and_code_that_uses_it_are_typed():
    # One run of mypy, because it spends most of its time reading PyTorch.
    assert faults(ROOT / "python" / "ckplan", Path(__file__).with_name("typed_user.py")) == ""


def test_the_package_says_that_it_is_typed():
    assert (Path(ckplan.__file__).parent / "py.typed").is_file()


def test_all_names_exist():
    for module in (ckplan, ckplan.torch):
        assert sorted(module.__all__) == module.__all__
        assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="'ckplan.torch' has no attribute 'Planner'"):
        _ = ckplan.torch.Planner


def test_what_compile_returns_is_of_its_types():
    assert isinstance(ckplan.torch.compile(nn.Linear(2, 2), "100%"), ckplan.torch.PlannedModule)
    planned = ckplan.torch.compile(torch.square, "100%")
    assert isinstance(planned, ckplan.torch.PlannedFunction)
