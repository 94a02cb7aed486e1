"""Estimates with kernels that need a GPU: those of Triton, and operators like flash-attention's."""

from __future__ import annotations

import json
import zlib

import ckplan.torch
import pytest
import torch
from torch import nn

from ckplan.torch.estimation import private


def estimate(make, example, **options):
    options = {"device": "h100-80g", "precision": "fp32", "context": 0} | options
    return ckplan.torch.estimate(make, example, **options)


def operations(found, kind):
    """Returns the operations of a kind as (bytes that are read, bytes that are written)."""
    graph = json.loads(found.graph)
    sizes = [value["bytes"] for value in graph["values"]]
    rows = [row for row in graph["ops"] if kind in row["op"]]
    assert all(row["repeat"] == "never" for row in rows)
    return [tuple(sum(sizes[v] for v in row[way]) for way in ("reads", "writes")) for row in rows]


class Around(nn.Module):
    """An operator between two layers, whose loss is a number."""

    def __init__(self, call, width=64):
        super().__init__()
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, 1)
        self.call = call

    def forward(self, x):
        return self.last(self.call(self.first(x)).relu()).mean()


# ---- Triton ----

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def scale_kernel(x, weight, out, inverse, width, BLOCK: tl.constexpr):
    """Divides rows by their roots of mean squares, as norms of language models do."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * width + at, mask=at < width, other=0.0)
    root = tl.rsqrt(tl.sum(values * values, axis=0) / width + 1e-6)
    tl.store(inverse + row, root)
    weights = tl.load(weight + at, mask=at < width, other=0.0)
    tl.store(out + row * width + at, values * root * weights, mask=at < width)


@triton.jit
def scale_back_kernel(grad, x, weight, inverse, dx, dw, width, BLOCK: tl.constexpr):
    """Writes the gradient of the rows, and of each row the gradient of the weights."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    root = tl.load(inverse + row)
    values = tl.load(x + row * width + at, mask=at < width, other=0.0)
    grads = tl.load(grad + row * width + at, mask=at < width, other=0.0)
    weights = tl.load(weight + at, mask=at < width, other=0.0)
    inner = tl.sum(grads * weights * values, axis=0) * root * root / width
    tl.store(dx + row * width + at, (grads * weights - values * inner) * root, mask=at < width)
    tl.store(dw + row * width + at, grads * values * root, mask=at < width)


class Scale(torch.autograd.Function):
    """Calls the kernels directly, as Liger's functions do."""

    @staticmethod
    def forward(ctx, x, weight):
        out, inverse = torch.empty_like(x), x.new_empty(len(x))
        scale_kernel[(len(x),)](x, weight, out, inverse, x.shape[1], BLOCK=64)
        ctx.save_for_backward(x, weight, inverse)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, inverse = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.empty_like(x)
        scale_back_kernel[(len(x),)](grad, x, weight, inverse, dx, dw, x.shape[1], BLOCK=64)
        return dx, dw.sum(0)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return Scale.apply(x, self.weight)


def test_kernels_of_triton_are_operations_with_the_buffers_that_they_write():
    found = estimate(lambda: Around(Norm()), torch.zeros(96, 64))
    rows = 96 * 64 * 4
    # Forward writes its result and a number for each row; backward two gradients of rows.
    assert [written for _, written in operations(found, "triton")] == [rows + 96 * 4, 2 * rows]
    assert found.backward_bytes >= 4 * rows


@torch.library.triton_op("ckplan_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    out, inverse = torch.empty_like(x), x.new_empty(len(x))
    torch.library.wrap_triton(scale_kernel)[(len(x),)](
        x, x[0], out, inverse, x.shape[1], BLOCK=64
    )
    return out


twice.register_autograd(lambda ctx, grad: twice(grad))


def test_operators_made_of_kernels_of_triton_are_traced():
    found = estimate(lambda: Around(twice), torch.zeros(96, 64))
    assert [written for _, written in operations(found, "triton")] == 2 * [96 * 64 * 4 + 96 * 4]


def test_triton_is_left_as_it_was():
    from torch.utils import _triton
    from triton.runtime import driver

    before = _triton.has_triton, dict(vars(driver))
    with pytest.raises(RuntimeError, match="a fault"), private.kernels_of_triton():
        if not before[0]():
            assert _triton.has_triton() and driver.active.get_current_target().arch == 80
        raise RuntimeError("a fault")
    assert (_triton.has_triton, dict(vars(driver))) == before


# ---- Operators of libraries, which have kernels for CUDA alone ----


@torch.library.custom_op("ckplan_flash::forward", mutates_args=(), device_types="cuda")
def flash_forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the result, a logarithm for each row, and the state of the generator."""
    raise NotImplementedError


@flash_forward.register_fake
def _(q, k, v, causal):
    batch, rows, heads, _ = q.shape
    logs = torch.empty((batch, heads, rows), dtype=torch.float32, device=q.device)
    return torch.empty_like(q), logs, torch.empty(2, dtype=torch.int64, device=q.device)


@torch.library.custom_op(
    "ckplan_flash::backward", mutates_args=("dq", "dk", "dv"), device_types="cuda"
)
def flash_backward(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logs: torch.Tensor,
    dq: torch.Tensor,
    dk: torch.Tensor,
    dv: torch.Tensor,
    causal: bool,
) -> torch.Tensor:
    """Writes the gradients, and returns a number for each row."""
    raise NotImplementedError


@flash_backward.register_fake
def _(grad, q, k, v, out, logs, dq, dk, dv, causal):
    return torch.empty_like(logs)


class Flash(torch.autograd.Function):
    """The function around them, as flash-attention has one."""

    @staticmethod
    def forward(ctx, q, k, v):
        out, logs, _ = flash_forward(q, k, v, True)
        ctx.save_for_backward(q, k, v, out, logs)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, logs = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        flash_backward(grad, q, k, v, out, logs, dq, dk, dv, True)
        return dq, dk, dv


def attend(x):
    q, k, v = (part.view(2, 48, 4, 16).contiguous() for part in (x, x.tanh(), x.sigmoid()))
    return Flash.apply(q, k, v).view(2, 48, 64)


def test_operators_like_flash_attentions_are_planned_by_their_fake_kernels():
    found = estimate(lambda: Around(attend), torch.zeros(2, 48, 64), precision="bf16")
    rows, logs = 2 * 48 * 64 * 2, 2 * 4 * 48 * 4
    ((read, written),) = operations(found, "ckplan_flash.forward")
    assert written == rows + logs + 16 and read == 3 * rows
    # Written to in place, by way of copies: the three gradients, and a number for each row.
    ((_, written),) = operations(found, "auto_functionalized")
    assert written == 3 * rows + logs


def test_a_compiled_function_that_is_no_operator_is_named_with_a_remedy():
    class Compiled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x).mean() * zlib.crc32(b"ckplan")

    with pytest.raises(ckplan.torch.EstimateError, match=r"make zlib\.crc32 an operator by"):
        estimate(Compiled, torch.zeros(2, 4))


@torch.compiler.disable
def choose(x):
    return x.relu()


def test_a_function_that_is_kept_from_the_compiler_is_named():
    match = "choose is excluded from torch.compile.*without the code that calls it"
    with pytest.raises(ckplan.torch.EstimateError, match=match):
        estimate(lambda: Around(choose), torch.zeros(2, 64))
