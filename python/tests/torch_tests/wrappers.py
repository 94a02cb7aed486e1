"""Wrappers in the form of Inductor's, written by hand, so that their memory can be counted."""

from __future__ import annotations

from typing import Any

import torch

from ckplan.torch.inductor import lowered_step

HEAD = """
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
async_compile = AsyncCompile()

double = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) { this is not C++ }
''')

async_compile.wait(globals())
del async_compile

def call(args):
"""

FORWARD = """
    x, = args
    args.clear()
    assert_size_stride(x, (256, ), (1, ))
    a = empty_strided_cpu((256, ), (1, ), torch.float32)
    double(x, a)
    b = reinterpret_tensor(a, (16, 16), (16, 1), 0); del a  # reuse
    c = empty_strided_cpu((16, 16), (16, 1), torch.float32)
    extern_kernels.mm(b, b, out=c)
    loss = empty_strided_cpu((), (), torch.float32)
    double(c, loss)
    del c
    return (loss, b)
"""
"""Needs 2,052 bytes at its end: a, c and the loss. 1,028 stay: a, as b, and the loss."""

BACKWARD = """
    b, tangent = args
    args.clear()
    d = empty_strided_cpu((16, 16), (16, 1), torch.float32)
    double(b, d)
    del b
    del tangent
    e = empty_strided_cpu((256, ), (1, ), torch.float32)
    double(d, e)
    f = empty_strided_cpu((256, ), (1, ), torch.float32)
    double(d, f)
    del d
    return (e, f)
"""
"""Needs the loss, its gradient, b and d, and then d, e and f."""


def wrapper(body: str, inputs: list[torch.Tensor], is_backward: bool = False) -> Any:
    return lowered_step.Wrapper(HEAD + body, is_backward, inputs, {})


def step(forward: str = FORWARD, backward: str = BACKWARD) -> lowered_step.Step:
    """Returns the two wrappers, whose results are the loss and two gradients."""
    saved = torch.empty(16, 16)
    wrappers = [
        wrapper(forward, [torch.empty(256)]),
        wrapper(backward, [saved, torch.empty(())], is_backward=True),
    ]
    return lowered_step.Step(wrappers, num_outputs=1)
