"""Plans with copies to the host, lowered by Inductor for a GPU on a machine without one.

The tests give Inductor the properties of a GPU. It lowers the modules of a plan on fake tensors, and
its wrappers are read and replayed; no kernel is compiled, and nothing runs.
"""

import contextlib
import itertools
import re
import types
from collections import Counter

import pytest
import torch
from ckplan.torch import private as own_private
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import private_kernels
from ckplan.torch.inductor.lowered_step import Step, Wrapper
from ckplan.torch.inductor.replay import replay
from ckplan.torch.module_builder import Modules
from ckplan.torch.tracker import Tracker
from torch import fx
from torch_tests.test_offload import compiled_modules

pytestmark = pytest.mark.skipif(
    own_private.version() < (2, 15), reason="PyTorch before 2.15 has no ao::offload"
)

H100 = types.SimpleNamespace(
    name="NVIDIA H100",
    major=9,
    minor=0,
    multi_processor_count=132,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=32,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    L2_cache_size=50 << 20,
    total_memory=80 << 30,
)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets Inductor find a GPU. What would reach a driver is replaced."""
    import torch._dynamo.device_interface as interfaces
    import torch._inductor.scheduler as scheduler
    import torch.utils._triton as triton

    cuda = interfaces.CudaInterface
    for place in (cuda, cuda.Worker):
        monkeypatch.setattr(place, "get_device_properties", staticmethod(lambda *_: H100))
        monkeypatch.setattr(place, "current_device", staticmethod(lambda: 0))
    monkeypatch.setattr(cuda, "get_compute_capability", staticmethod(lambda *_: 90))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: H100)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(scheduler, "has_triton", lambda: True)
    monkeypatch.setattr(triton, "triton_hash_with_backend", lambda: "")
    monkeypatch.setattr(triton, "triton_backend", lambda: None)
    # Wrappers select the device before they call kernels.
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(torch.cuda, "_DeviceGuard", lambda _: contextlib.nullcontext())


def lowered(module: fx.GraphModule, is_backward: bool) -> Wrapper:
    """Returns what Inductor makes of a module."""
    from torch._inductor import config
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch.fx.experimental.proxy_tensor import make_fx

    inputs = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    mode = inputs[0].fake_mode
    with mode, torch.no_grad():
        decomposed = make_fx(module, select_decomp_table())(*inputs)
    with V.set_fake_mode(mode):
        graph = GraphLowering(decomposed, example_inputs=inputs, is_backward=is_backward)
        with (
            V.set_graph_handler(graph),
            V.set_debug_handler(DebugContext()),
            config.patch(fx_graph_cache=False, compile_threads=1),
        ):
            graph.run(*inputs)
            code, _ = graph.codegen()
    return Wrapper(code.value, is_backward, inputs, dict(graph.constants))


def step_of(modules: Modules) -> Step:
    wrappers = [lowered(modules.forward, False), lowered(modules.backward, True)]
    return Step(wrappers, num_outputs=1)


def peak_of_operators(modules: Modules, captured: JointGraph) -> int:
    """Returns the most bytes on the GPU at once, if the modules' operators run one by one."""
    tracker = Tracker()
    inputs = [node.meta["val"] for node in modules.forward.graph.find_nodes(op="placeholder")]
    with inputs[0].fake_mode, torch.no_grad():
        run = fx.Interpreter(modules.forward).boxed_run
        results, *saved = tracker.run(run, inputs)
        tracker.forget_dead()
        inputs = [node.meta["val"] for node in modules.backward.graph.find_nodes(op="placeholder")]
        tracker.hold(inputs[len(saved) :])
        saved += inputs[len(saved) :]
        gradients = tracker.run(fx.Interpreter(modules.backward).boxed_run, saved)
        tracker.leave_out(gradients[i] for i in captured.parameter_gradients())
        del results
    return max(itertools.accumulate(size for _, size in tracker.changes("cuda")))


def test_all_copies_survive_fusion(monkeypatch):
    modules, _ = compiled_modules(monkeypatch)
    copies = 0
    for module, is_backward in ((modules.forward, False), (modules.backward, True)):
        with private_kernels.keeping_order():
            text = lowered(module, is_backward).text
        calls = re.findall(r"= torch\.ops\.ao\.(\w+)\.default\((.*)\)", text)
        planned = Counter(
            node.target.__name__.partition(".")[0]
            for node in module.graph.nodes
            if str(node.target).startswith("ao.")
        )
        assert Counter(kind for kind, _ in calls) == planned
        copies += planned["offload"] + planned["reload"]
        # After a drop, nothing holds the copied tensor.
        lines = text.splitlines()
        for kind, arguments in calls:
            host, _, source = arguments.partition(", ")
            source = source.partition(",")[0]
            if kind != "wait_tensor" or source.startswith("keepalive"):
                continue
            at = next(i for i, line in enumerate(lines) if f"wait_tensor.default({host}, " in line)
            freed = [i for i, line in enumerate(lines) if f"del {source}" in line]
            assert all(i > at for i in freed), (host, source)
    assert copies > 20


def test_copies_back_stay_where_the_plan_has_them(monkeypatch):
    """By itself Inductor copies everything back at the beginning of the backward pass."""
    modules, captured = compiled_modules(monkeypatch)
    uncounted = captured.parameter_gradients()
    by_itself = replay(step_of(modules), uncounted).tensors_peak_bytes
    with private_kernels.keeping_order():
        step = step_of(modules)
        in_order = replay(step, uncounted).tensors_peak_bytes
    assert in_order < by_itself
    assert in_order <= peak_of_operators(modules, captured)
    text = step.backward.text
    products = [found.start() for found in re.finditer(r"extern_kernels\.\w*mm", text)]
    loads = [found.start() for found in re.finditer(r"ao\.reload", text)]
    assert sum(load > products[0] for load in loads) > len(loads) / 2


def test_copies_on_the_host_are_no_memory_of_the_device(monkeypatch):
    modules, captured = compiled_modules(monkeypatch)
    with private_kernels.keeping_order():
        step = step_of(modules)
    found = replay(step, captured.parameter_gradients())
    outputs = next(iter(modules.forward.graph.find_nodes(op="output"))).args[0]
    saved = [node.meta["val"] for node in outputs]
    on_host = sum(v.untyped_storage().nbytes() for v in saved if v.device.type == "cpu")
    assert on_host > 0
    made = {v.untyped_storage()._cdata: v for v in saved if v.device.type == "cuda"}
    assert found.saved_bytes <= sum(v.untyped_storage().nbytes() for v in made.values())
