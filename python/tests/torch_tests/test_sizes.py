"""A step at another size follows from captures at three, and a graph that changes is refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch_tests.networks import Bert
from torch_tests.training import loss_of

from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation import sizes, tracing
from ckplan.torch.estimation.sizes import _Polynomials, _largest

FP32 = tracing.Precision.named("fp32")


def captured(make, example):
    step = tracing.trace_step(make, example, FP32, loss_of)
    inputs = sum(tensor.nbytes for tensor in step.inputs)
    return SimpleNamespace(graph=step.graph(arriving=True), input_bytes=inputs, workspaces=[])


def tokens(length):
    return torch.zeros(2, length, dtype=torch.long)


def test_bytes_of_attention_grow_with_the_square_of_the_length():
    """Attention in pieces has a matrix of length x length for each head."""

    def make():
        return Bert(1, 32, 4, 64, 256)

    lengths = (8, 16, 24)
    curve = _Polynomials("length", [(n, captured(make, tokens(n))) for n in lengths])
    found, expected = curve.at(200), captured(make, tokens(200))
    assert found.graph.values == expected.graph.values
    assert found.input_bytes == expected.input_bytes == 2 * 200 * 8
    assert any(value.bytes == 2 * 4 * 200 * 200 * 4 for value in found.graph.values)


def test_a_loop_over_the_size_is_refused():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            for row in x.unbind(1):
                x = x + self.linear(row)[:, None]
            return x

    points = [(n, captured(Loop, torch.zeros(2, n, 4))) for n in (2, 3)]
    with pytest.raises(EstimateError, match="the graph changes with the size length"):
        _Polynomials("length", points)


@pytest.mark.parametrize(
    ("most", "base", "known", "expected"),
    [(100, 8, None, 100), (7, 8, None, 7), (1, 8, None, 1), (0, 8, None, None), (50, 8, 33, 50)],
)
def test_the_largest_size_is_found_from_either_side(most, base, known, expected):
    asked = []

    def fits(size):
        asked.append(size)
        return size <= most

    assert _largest(fits, base, known) == expected
    assert len(asked) < 20


@pytest.mark.parametrize("base", [4, 8])
def test_no_row_needs_more_than_the_device_has(base, monkeypatch):
    """A search with more time to spend may find a worse plan, and captures have other costs."""

    def need(_, measured, added):
        planned = {None: 20, 10: 12, 30: 13}[added] * measured.size
        return planned + (7 if measured.is_captured and measured.size != base else 0)

    class Curve:
        sizes = (base, 2 * base, 3 * base)

        def __init__(self, *_):
            pass

        def at(self, size):
            return measured_at(size, False)

        def learn(self, size, workspaces):
            pass

    def measured_at(size, is_captured=True):
        rows = {"graph": SimpleNamespace(values=[size]), "input_bytes": size, "workspaces": []}
        return SimpleNamespace(size=size, is_captured=is_captured, **rows)

    monkeypatch.setattr(sizes, "_Polynomials", Curve)
    monkeypatch.setattr(sizes.Search, "_need", need)
    monkeypatch.setattr(sizes.Search, "_capture", lambda _, name, size: measured_at(size))
    case = SimpleNamespace(memory_bytes=100)
    search = sizes.Search(None, torch.zeros(base, 2), None, case, measured_at(base), "quick")
    rows = search.rows("batch", (None, 10, 30))
    assert [row.added_percent for row in rows] == [None, 10, 30]
    assert [row.value for row in rows] == [5, 8, 8]
    assert all(row.need_bytes <= case.memory_bytes for row in rows)
