"""Tests modules compiled by Inductor: equal values up to rounding, and a checked plan."""

from __future__ import annotations

import copy
import shutil

import pytest
import torch
from torch import nn
from torch_tests.training import train

import ckplan.torch
from ckplan.torch import private

pytestmark = [
    pytest.mark.skipif(private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a compiler"),
]


def test_inductor_trains_the_same_within_rounding(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    torch.manual_seed(0)
    layers = [part for _ in range(3) for part in (nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.2))]
    model = nn.Sequential(*layers)
    planned = ckplan.torch.compile(
        copy.deepcopy(model), budget="75%", effort="quick", compiler="inductor"
    )
    with torch._inductor.config.patch(fallback_random=True):
        found = train(planned, lambda: torch.randn(16, 32), steps=2)
    expected = train(model, lambda: torch.randn(16, 32), steps=2)
    for ours, theirs in zip(found, expected):
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a, b)
    (graph,) = planned.ckplan.graphs
    assert graph.plan.peak_bytes <= 0.75 * graph.plan.keep_all_peak_bytes
    assert "not measured" in planned.ckplan.summary()
