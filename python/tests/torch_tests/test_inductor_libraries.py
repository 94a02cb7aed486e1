"""Tests that the C++ kernels of a wrapper are compiled together, and run as each one alone."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch
from torch import nn

import ckplan.torch
from ckplan.torch import private
from ckplan.torch.inductor import private_kernels
from ckplan.torch.inductor.libraries import CppKernel, Kernel, compiled
from ckplan.torch.inductor.lowered_step import Flags

pytestmark = [
    pytest.mark.skipif(private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a compiler"),
]

HEADER = "#include <torch/csrc/inductor/cpp_prefix.h>\n"


def kernel(parameters: dict[str, str], body: str) -> CppKernel:
    listed = ", ".join(f"{type} {name}" for name, type in parameters.items())
    text = f'{HEADER}extern "C"  void  kernel({listed})\n{{\n{body}\n}}\n'
    return CppKernel(tuple(parameters.values()), text)


ADD = kernel({"a": "const float*", "b": "const float*", "c": "float*"}, "c[0] = a[0] + b[0];")
NEGATE = kernel({"a": "const float*", "b": "float*"}, "b[0] = -a[0];")
COUNT = kernel({"a": "int64_t*"}, "a[0] += 1;")
SIZED = kernel({"a": "float*", "size": "const int64_t"}, "a[size] = 5;")


class Compiler:
    """Notes what it compiles, each kernel alone, and may refuse kernels that are joined."""

    def __init__(self, refuses: bool = False):
        self.refuses = refuses
        self.texts: list[str] = []

    def __call__(self, kernels: list[CppKernel]) -> list[Kernel]:
        self.texts += [each.text for each in kernels]
        if self.refuses and any("namespace" in each.text for each in kernels):
            raise RuntimeError("these names clash")
        return [lambda *arguments, text=each.text: (text, arguments) for each in kernels]


def test_kernels_share_as_many_libraries_as_there_are_threads():
    for threads, libraries in (1, 1), (2, 2), (16, 3):
        compiler = Compiler()
        compiled([ADD, NEGATE, COUNT, ADD], compiler, threads)
        assert len(compiler.texts) == libraries
        assert sum(text.count("void kernel(") for text in compiler.texts) == 3 + libraries


def test_what_cannot_share_a_library_has_one_of_its_own():
    compiler = Compiler()
    functions = compiled([ADD, SIZED, NEGATE], compiler, 1)
    assert compiler.texts[1:] == [SIZED.text]
    assert functions[1](1, 2) == (SIZED.text, (1, 2))


def test_each_kernel_is_compiled_alone_where_the_compiler_does_not_take_them_together():
    compiler = Compiler(refuses=True)
    functions = compiled([ADD, NEGATE, ADD], compiler, 1)
    assert compiler.texts[1:] == [ADD.text, NEGATE.text]
    assert [function("x")[0] for function in functions] == [ADD.text, NEGATE.text, ADD.text]


def test_joined_kernels_compute_what_each_one_does():
    texts = [
        f"async_compile.cpp_pybinding({list(each.types)}, {each.text!r})"
        for each in (ADD, NEGATE, COUNT, SIZED)
    ]
    add, negate, count, sized = private_kernels.compiled_kernels(texts)
    a, b, c = torch.tensor([2.0]), torch.tensor([3.0]), torch.zeros(2)
    add(a, b, c)
    assert c.tolist() == [5, 0]
    negate(a, c)
    assert c.tolist() == [-2, 0]
    sized(c, 1)
    assert c.tolist() == [-2, 5]
    number = torch.tensor([7])
    count(number)
    assert number.item() == 8


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(3))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x)).softmax(-1) + x
        return x.square().mean()


def test_a_planned_step_has_few_libraries(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("torch._inductor.async_compile.get_compile_threads", lambda: 2)
    torch._inductor.utils.clear_caches()
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Layers()
    step = ckplan.torch.compile(model, "min", compiler="inductor")
    inputs = torch.randn(64, 24)
    step(inputs).backward()
    found = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    model(inputs).backward()
    torch.testing.assert_close(found, [parameter.grad for parameter in model.parameters()])
    joined = [path for path in tmp_path.glob("*/*.main.cpp") if "kernel_0::" in path.read_text()]
    assert len(joined) == 2 * 2  # One for the forward wrapper, one for the backward wrapper.


def normalized(x: torch.Tensor) -> torch.Tensor:
    """Its loops cannot be one: each reads what the one before has written in another order."""
    for place in range(4):
        x = x.softmax(place % 2)
    return x


@pytest.mark.parametrize("worth_bytes", [0, 4 * 64 * 64, 1 << 20])
def test_a_kernel_ends_where_as_much_can_be_freed_as_is_worth_it(worth_bytes: int):
    torch._dynamo.reset()
    x = torch.randn(64, 64)
    with private_kernels.fusing(Flags(near=True, worth_bytes=worth_bytes)):
        compiled_function = torch.compile(normalized, options={"fx_graph_cache": False})
        result, (code,) = torch._inductor.utils.run_and_get_code(compiled_function, x)
    torch.testing.assert_close(result, normalized(x))
    is_divided = worth_bytes == 4 * 64 * 64  # The buffers that a loop has read.
    assert (code.count("async_compile.cpp_pybinding(") > 1) == is_divided
