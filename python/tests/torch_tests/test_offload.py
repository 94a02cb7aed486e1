"""Tests steps that move values to the host and back."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch_tests.moving import use_moves
from torch_tests.networks import NETWORKS
from torch_tests.training import assert_same, loss_of, train_both

import ckplan.torch
from ckplan.torch import graph_planner, module_builder, private
from ckplan.torch.graph import JointGraph
from ckplan.torch.offload import host, steps
from ckplan.torch.offload.steps import DROP, IN, OUT, Transfer
from ckplan.torch.parts import Part, Parts
from ckplan.torch.request import Request


def mlp(layers: int = 5) -> nn.Sequential:
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.2)]
    return nn.Sequential(*parts)


def rows() -> torch.Tensor:
    return torch.randn(16, 32)


@pytest.mark.parametrize("budget", ["100%", "70%"])
@pytest.mark.parametrize("name", NETWORKS)
def test_same_bits_within_the_planned_peaks_of_device_and_host(monkeypatch, name, budget):
    plans = use_moves(monkeypatch)
    make, batch = NETWORKS[name]
    report = train_both(make, batch, traced=name == "conv-recurrent", budget=budget)
    (graph,) = report.graphs
    assert graph.plan is plans[-1]
    moves = [step.kind for step in graph.plan.schedule if isinstance(step, Transfer)]
    assert moves.count(OUT) > 3
    assert moves.count(IN) >= moves.count(OUT)
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert graph.measured_host_peak_bytes == graph.plan.host_peak_bytes > 0


@pytest.mark.parametrize("seed", range(6))
def test_transfers_in_all_orders(monkeypatch, seed):
    plans = use_moves(monkeypatch, seed)
    (graph,) = train_both(mlp, rows, budget="100%").graphs
    cut = graph.plan.schedule.index(_boundary(graph.plan))
    kinds = [step.kind for step in graph.plan.schedule[cut:] if isinstance(step, Transfer)]
    assert DROP in kinds, "some copies are under way when the forward pass ends"
    assert graph.measured_host_peak_bytes == plans[-1].host_peak_bytes > 0


def _boundary(plan: ckplan.torch.Plan) -> int:
    return next(row["id"] for row in _document(plan)["ops"] if row["op"] == "boundary")


def _document(plan: ckplan.torch.Plan) -> Any:
    return json.loads(plan.graph)


def test_the_summary_says_what_is_moved(monkeypatch):
    use_moves(monkeypatch)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    loss_of(planned(rows())).backward()
    (graph,) = planned.ckplan.graphs
    on_host = ckplan.torch.report.size(graph.plan.host_peak_bytes)
    moved = ckplan.torch.report.size(graph.plan.transfer_bytes)
    waiting = f"{100 * graph.plan.stall_cost / graph.plan.step_cost:.0f}% time waiting"
    expected = f"{moved} moved, on the host at most {on_host}, measured {on_host}, {waiting}"
    assert expected in planned.ckplan.summary()
    figures = planned.ckplan.figures()
    assert figures["ckplan_planned_host_peak_bytes"] == graph.plan.host_peak_bytes


def test_more_host_memory_than_planned_is_reported(monkeypatch):
    use_moves(monkeypatch)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    loss_of(planned(rows())).backward()
    (graph,) = planned.ckplan.graphs
    assert not graph.is_above_plan
    graph.measured_host_peak_bytes += 1
    assert "ABOVE THE PLAN" in graph.line()


@pytest.mark.parametrize("method", ["wait", "drop"])
def test_a_wait_that_is_missing_is_seen(monkeypatch, method):
    use_moves(monkeypatch)
    monkeypatch.setattr(host.HostMemory, method, lambda self, tensor, *_: tensor)
    with pytest.raises(AssertionError, match="step 0, tensor"):
        train_both(mlp, rows, budget="100%")


def test_memory_that_was_dropped_holds_poison(monkeypatch):
    use_moves(monkeypatch)
    dropped: list[torch.Tensor] = []
    drop = host.HostMemory.drop

    def keep(self: Any, on_host: Any, tensor: Any, poisons: bool) -> Any:
        if poisons:
            dropped.append(tensor)
        return drop(self, on_host, tensor, poisons)

    monkeypatch.setattr(host.HostMemory, "drop", keep)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    loss_of(planned(rows())).backward()
    assert dropped
    assert all(tensor.isnan().all() for tensor in dropped if tensor.is_floating_point())


@pytest.mark.parametrize("change", [-1, 1])
def test_modules_that_need_other_host_memory_are_refused(monkeypatch, change):
    use_moves(monkeypatch)
    moved = graph_planner.make_plan

    def wrong(*arguments: Any) -> ckplan.torch.Plan:
        plan = moved(*arguments)
        return dataclasses.replace(plan, host_peak_bytes=plan.host_peak_bytes + change)

    monkeypatch.setattr(graph_planner, "make_plan", wrong)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    with pytest.raises(ckplan.torch.ReplayError, match="bytes of host memory, but the plan says"):
        planned(rows())


def test_a_value_that_others_hold_cannot_be_moved(monkeypatch):
    def wrong(joint: Any, graph: JointGraph, schedule: list[steps.Step], **options: Any) -> Any:
        (held, *_) = (value.alias_of for value in graph.values if value.alias_of is not None)
        moves = [Transfer(kind, held) for kind in (OUT, DROP, IN)]
        return module_builder.build(joint, graph, [*schedule, *moves], **options)

    monkeypatch.setattr(graph_planner, "build", wrong)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    with pytest.raises(ckplan.torch.OffloadError, match="but another value shares its memory"):
        planned(rows())


def test_a_retained_graph_computes_the_same_again(monkeypatch):
    use_moves(monkeypatch)
    model = mlp()
    planned = ckplan.torch.compile(copy.deepcopy(model), budget="100%", effort="quick")
    batch, found = rows(), []
    for trained in (model, planned):
        torch.manual_seed(5)
        loss = loss_of(trained(batch))
        loss.backward(retain_graph=True)
        loss.backward()
        found.append([parameter.grad for parameter in trained.parameters()])
    assert_same(found[1:], found[:1])


def test_calls_that_wait_have_host_memory_of_their_own(monkeypatch):
    plans = use_moves(monkeypatch)
    model = mlp()
    planned = ckplan.torch.compile(copy.deepcopy(model), budget="100%", effort="quick")
    first, second, found = rows(), rows(), []
    for trained in (model, planned):
        for _ in range(2):
            torch.manual_seed(5)
            (loss_of(trained(first)) + loss_of(trained(second))).backward()
        found.append([parameter.grad for parameter in trained.parameters()])
    assert_same(found[1:], found[:1])
    (graph,) = planned.ckplan.graphs
    assert graph.calls == 2
    assert plans[0].host_peak_bytes < graph.measured_host_peak_bytes <= graph.step_host_peak_bytes


def test_results_that_are_dropped_may_move_and_be_held_after_all(monkeypatch):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = mlp()

        def forward(self, batch):
            output = self.layers(batch)
            return output.square().mean(), output

    use_moves(monkeypatch)
    model = Two()
    planned = ckplan.torch.compile(copy.deepcopy(model), budget="100%", returns="loss")
    batch, found = rows(), []
    for trained in (model, planned):
        for is_held in (False, True):
            torch.manual_seed(5)
            loss, output = trained(batch)
            if not is_held:
                del output
            loss.backward()
            if is_held:
                found.append([output.detach(), *(p.grad for p in trained.parameters())])
    assert_same(found[1:], found[:1])


# ---- Requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host_memory": "1GiB"}, 'need offload, such as offload="pcie5"'),
        ({"never_offload": "op:gelu"}, 'need offload, such as offload="pcie5"'),
        ({"offload": "pcie5", "costs": "flops"}, "offload needs costs in time"),
        ({"offload": "pcie9"}, "pcie9"),
        ({"offload": "pcie5", "host_memory": "much"}, "much"),
    ],
)
def test_what_cannot_be_asked_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        ckplan.torch.compile(mlp(), budget="60%", **options)


def test_the_request_is_in_the_plan_and_what_stays_is_named():
    planned = ckplan.torch.compile(
        mlp(2),
        budget="100%",
        algo="keep-all",
        offload="pcie5:50/40,half",
        host_memory=1 << 20,
        keep="0",
        never_offload="op:gelu",
    )
    loss_of(planned(rows())).backward()
    (graph,) = planned.ckplan.graphs
    asked = graph.plan.document["request"]
    link = asked["offload"]
    assert (link["out_bytes_per_second"], link["in_bytes_per_second"]) == (50 * 10**9, 40 * 10**9)
    assert graph.plan.on_host.is_half_duplex
    assert asked["host_budget_bytes"] == 1 << 20
    names = [row["name"] for row in _document(graph.plan)["ops"]]
    assert asked["never_offload"] == [name for name in names if name in ("addmm", "gelu", "gelu_1")]
    assert "offload pcie5:50/40,half, host memory 1048576" in planned.ckplan.summary()


def test_a_kept_plan_is_taken_again(monkeypatch, tmp_path, recwarn):
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path))
    options = {"algo": "dtr", "offload": "pcie5", "host_memory": "1GiB", "never_offload": "op:gelu"}
    for _ in range(2):
        torch._dynamo.reset()
        planned = ckplan.torch.compile(mlp(), budget="70%", returns="loss", **options)
        loss_of(planned(rows())).backward()
    assert not [w for w in recwarn if "is not used" in str(w.message)]
    assert len(list(tmp_path.glob("*.json"))) == 1


@pytest.mark.skipif(private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old")
def test_inductor_on_a_cpu_is_refused():
    planned = ckplan.torch.compile(mlp(), budget="60%", compiler="inductor", offload="pcie5")
    with pytest.raises(ckplan.torch.OffloadError, match="needs a GPU"):
        planned(rows())


def test_parts_of_a_model_share_the_memory_of_the_host():
    parts = Parts(Request("60%", offload="pcie5", host_memory=1000))
    parts.found = [Part(saved_host_bytes=300, calls=1), Part(saved_host_bytes=400), Part()]
    assert [parts.host_left_bytes(i) for i in range(3)] == [1000, 700, 300]
    known = [Part(calls=2), Part(calls=4)]
    again = Parts(Request("60%", offload="pcie5", host_memory=1000), known)
    again.found = [Part(saved_host_bytes=300), Part()]
    assert [again.host_left_bytes(i) for i in range(2)] == [500, 100]
    assert Parts(Request("60%", offload="pcie5")).host_left_bytes(0) is None


# ---- On a simulated GPU -------------------------------------------------------------------------


class PlayedStream:
    """A stream beside the computing one. It does its work as late as a GPU may."""

    def __init__(self, *_: Any):
        self.work: list[Callable[[], object]] = []
        self.done = 0

    def wait_stream(self, other: Any) -> None:
        pass  # The computing stream does its work at once.

    def record_event(self) -> Any:
        return self, len(self.work)

    def run(self, count: int) -> None:
        for position in range(self.done, count):
            self.work[position]()
            self.work[position] = bool  # It no longer holds tensors.
        self.done = max(self.done, count)


class Computing:
    """The computing stream. It does its work at once."""

    def wait_event(self, event: Any) -> None:
        stream, count = event
        stream.run(count)

    def wait_stream(self, stream: PlayedStream) -> None:
        stream.run(len(stream.work))


def play_gpu(monkeypatch: Any) -> list[str]:
    """Runs the code for GPUs on a CPU. Returns the streams that get copies, as they get them."""
    used: list[str] = []
    streams: dict[Any, PlayedStream] = {}
    current: list[PlayedStream] = []

    @contextlib.contextmanager
    def stream(beside: PlayedStream) -> Any:
        current.append(beside)
        yield
        current.pop()

    def copy_(to: torch.Tensor, source: torch.Tensor) -> None:
        used.append(next(way for (_, way), known in streams.items() if known is current[-1]))
        current[-1].work.append(lambda: to.copy_(source))

    monkeypatch.setattr(host, "_streams", streams)
    monkeypatch.setattr(host, "_has_streams", lambda _: True)
    monkeypatch.setattr(host, "_copy", copy_)
    monkeypatch.setattr(torch.cuda, "Stream", PlayedStream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: Computing())
    monkeypatch.setattr(torch.cuda, "stream", stream)
    return used


@pytest.mark.parametrize("seed", range(3))
def test_streams_and_events_make_the_same_bits(monkeypatch, seed):
    use_moves(monkeypatch, seed)
    used = play_gpu(monkeypatch)
    (graph,) = train_both(mlp, rows, budget="100%").graphs
    assert set(used) == {"out", "in"}
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert graph.measured_host_peak_bytes == graph.plan.host_peak_bytes


def test_a_wait_for_an_event_that_is_missing_is_seen(monkeypatch):
    use_moves(monkeypatch)
    play_gpu(monkeypatch)
    monkeypatch.setattr(host, "_wait_for", lambda *_: None)
    with pytest.raises(AssertionError, match="step 0, tensor"):
        train_both(mlp, rows, budget="100%")


def test_a_link_for_one_direction_at_a_time_has_one_stream(monkeypatch):
    use_moves(monkeypatch)
    used = play_gpu(monkeypatch)
    place = ckplan.torch.Plan.on_host
    half = property(lambda plan: dataclasses.replace(place.fget(plan), is_half_duplex=True))
    monkeypatch.setattr(ckplan.torch.Plan, "on_host", half)
    train_both(mlp, rows, budget="100%")
    assert set(used) == {"both"}


def test_a_failing_pass_leaves_no_copy_under_way(monkeypatch):
    use_moves(monkeypatch)
    play_gpu(monkeypatch)

    def fail(self: Any, tensor: torch.Tensor, on_host: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    monkeypatch.setattr(host.HostMemory, "wait", fail)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    with pytest.raises(KeyboardInterrupt):
        loss_of(planned(rows())).backward()
    assert len(host._streams) == 2
    assert all(stream.done == len(stream.work) for stream in host._streams.values())


def test_a_copy_that_no_backward_pass_waits_for_holds_its_memory(monkeypatch):
    use_moves(monkeypatch, seed=2)
    play_gpu(monkeypatch)
    before = set(host._memories)
    planned = ckplan.torch.compile(mlp(), budget="100%", effort="quick")
    planned(rows())
    (memory,) = set(host._memories) - before
    assert memory._arrivals, "a copy is under way when the forward pass ends"
    loss_of(planned(rows())).backward()
    assert not memory._arrivals


# ---- In compiled graphs --------------------------------------------------------------------------


def compiled_modules(monkeypatch: Any) -> tuple[module_builder.Modules, JointGraph]:
    """Returns modules for a compiler, of a plan that moves values of a model on a GPU.

    The model is traced on a CPU, and its fake tensors are then replaced by those of a GPU.
    """
    found: list[Any] = []

    def build(joint: Any, captured: JointGraph, schedule: Any, **options: Any) -> Any:
        on_gpu = {node: _on_gpu(node.meta.get("val")) for node in joint.graph.nodes}
        before = {node: node.meta.get("val") for node in joint.graph.nodes}
        for node, value in on_gpu.items():
            node.meta["val"] = value
        compiled = module_builder.build(joint, captured, schedule, is_compiled=True)
        found.append((compiled, captured))
        for node, value in before.items():
            node.meta["val"] = value
        return module_builder.build(joint, captured, schedule, **options)

    use_moves(monkeypatch)
    monkeypatch.setattr(graph_planner, "build", build)
    planned = ckplan.torch.compile(nn.Sequential(*[nn.Linear(32, 32), nn.GELU()] * 4), "100%")
    loss_of(planned(rows())).backward()
    return found[0]


def _on_gpu(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_on_gpu(item) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    with value.fake_mode:  # type: ignore[attr-defined]
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")


@pytest.mark.skipif(private.version() < (2, 15), reason="2.8 has no ao::offload")
def test_compiled_graphs_have_operators_of_pytorch_in_the_right_order(monkeypatch):
    modules, _ = compiled_modules(monkeypatch)
    operators = torch.ops.ao
    waits = 0
    for module in (modules.forward, modules.backward):
        order = {node: position for position, node in enumerate(module.graph.nodes)}
        for node in module.graph.nodes:
            if node.target is operators.offload.default:
                (source,) = node.args
                drops = [u for u in node.users if u.target is operators.wait_tensor.default]
                for drop in drops:
                    assert drop.args == (node, source), "the drop keeps what is copied until then"
                    assert order[drop] == max(order[user] for user in source.users)
            if node.target is operators.reload.default:
                on_host, device, shape, strides = node.args
                assert device.type == "cuda"
                made = node.meta["val"]
                assert (shape, strides) == (list(made.shape), list(made.stride()))
                (wait,) = node.users
                assert wait.target is operators.wait_tensor.default
                assert wait.args == (node,)
                assert on_host.meta["val"].device.type == "cpu"
                waits += 1
    assert waits > 3
    assert not any(
        isinstance(getattr(node.target, "__self__", None), host.HostMemory)
        for module in (modules.forward, modules.backward)
        for node in module.graph.nodes
    )


@pytest.mark.skipif(private.version() < (2, 15), reason="2.8 has no ao::offload")
def test_compiled_graphs_make_tensors_of_the_planned_forms(monkeypatch):
    modules, _ = compiled_modules(monkeypatch)
    for module in (modules.forward, modules.backward):
        inputs = module.graph.find_nodes(op="placeholder")
        _Propagating(module).run(*(node.meta["val"] for node in inputs))


class _Propagating(fx.Interpreter):
    """Runs a module on fake tensors of a GPU, and compares each result with its note."""

    def run_node(self, node: fx.Node) -> Any:
        with next(v.meta["val"] for v in self.module.graph.nodes if "val" in v.meta).fake_mode:
            result = super().run_node(node)
        noted = node.meta.get("val")
        if isinstance(noted, torch.Tensor) and node.op == "call_function":
            assert result.device.type == noted.device.type, node
            assert (result.shape, result.stride()) == (noted.shape, noted.stride()), node
        return result
