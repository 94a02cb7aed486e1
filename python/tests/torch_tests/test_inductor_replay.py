"""Tests the replay of Inductor's code by wrappers whose memory is counted by hand."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from ckplan.torch.inductor import operator_workspaces
from ckplan.torch.inductor.lowered_step import NotReplayedError
from ckplan.torch.inductor.replay import Form, KernelCall, OperatorCall, replay
from ckplan.torch.inductor.wrapper import load
from torch_tests import wrappers
from torch_tests.wrappers import FORWARD, step


def test_reference_counts_decide_what_lives():
    found = replay(step(), uncounted=[])
    # The loss and its gradient, d, e and f.
    assert found.tensors_peak_bytes == 8 + 3 * 1024
    assert found.saved_bytes == 1028


def test_gradients_that_are_counted_elsewhere_are_left_out():
    found = replay(step(), uncounted=[0, 1])
    # b and d with the loss and its gradient; e and f are of parameters.
    assert found.tensors_peak_bytes == 8 + 2 * 1024


def test_a_name_that_is_deleted_later_costs_memory():
    late = FORWARD.replace("; del a  # reuse", "").replace("    del c\n", "") + "    del a\n"
    late = late.replace("b = reinterpret_tensor(a", "b = 2 * reinterpret_tensor(a")
    assert replay(step(late), [0, 1]).tensors_peak_bytes > 3 * 1024


def test_no_kernel_is_compiled_and_all_calls_are_known():
    calls = replay(step(), [0, 1]).calls
    kernels = [call.kernel.name for call in calls if isinstance(call, KernelCall)]
    assert kernels == ["double"] * 5
    (product,) = [call for call in calls if isinstance(call, OperatorCall)]
    assert "aten.mm.out" in product.key
    assert {form.shape for form in product.forms()} == {(16, 16)}


def test_what_operators_need_is_added_at_their_call():
    found = replay(step(), [0, 1])
    (product,) = [call for call in found.calls if isinstance(call, OperatorCall)]
    # When the product runs, b and c are there; the peak comes later.
    assert found.peak_bytes({product.key: 8}) == found.tensors_peak_bytes
    assert found.peak_bytes({product.key: 4096}) == 2 * 1024 + 4096


def test_a_wrapper_of_another_form_is_not_replayed():
    strange = wrappers.wrapper("    return ()", [])
    strange.text = strange.text.replace("def call(", "def run(")
    with pytest.raises(NotReplayedError, match="no function call"):
        load(strange, lambda *_: None)
    alone = step()
    del alone.wrappers[1]
    with pytest.raises(NotReplayedError, match="generated 0 backward wrappers"):
        replay(alone, [])
    open_size = step()
    open_size.wrappers[0].inputs = [7]
    with pytest.raises(NotReplayedError, match="7, which is not a tensor"):
        replay(open_size, [])


def convolution(size: int = 8) -> OperatorCall:
    """Returns a call of an operator that allocates within it, as a replay notes it."""
    body = """
    x, weight = args
    args.clear()
    return (torch.ops.aten.convolution.default(x, weight, None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1),)
"""
    forward = wrappers.wrapper(body, [torch.empty(2, 3, size, size), torch.empty(4, 3, 3, 3)])
    whole = step()
    whole.wrappers[0] = forward
    nothing = "    tangent, = args\n    args.clear()\n    return ()"
    whole.wrappers[1] = wrappers.wrapper(nothing, [torch.empty(())], is_backward=True)
    calls = replay(whole, []).calls
    return next(call for call in calls if isinstance(call, OperatorCall))


def allocated_within(call: OperatorCall) -> int:
    """Returns what the profiler records of the call beside its result."""
    x, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    with (
        torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profiled,
        torch.no_grad(),
    ):
        made = call.operator(x, weight, None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1)
    tree = profiled.profiler.kineto_results.experimental_event_tree()
    live = peak = 0
    for _, size in sorted(_allocations(tree)):
        live += size
        peak = max(peak, live)
    return peak - made.untyped_storage().nbytes()


def _allocations(events):
    for event in events:
        if event.tag == torch._C._profiler._EventType.Allocation:
            yield event.start_time_ns, event.extra_fields.alloc_size
        yield from _allocations(event.children)


def test_what_an_operator_needs_is_what_the_allocator_records(monkeypatch):
    monkeypatch.setattr(operator_workspaces, "_known", {})
    call = convolution()
    found = operator_workspaces.workspace_bytes([call])
    assert found == {call.key: allocated_within(call)}
    assert found[call.key] > 0


def test_a_result_that_is_counted_elsewhere_counts_in_no_call(monkeypatch):
    monkeypatch.setattr(operator_workspaces, "_known", {})
    call = convolution()
    alone = dataclasses.replace(call, uncounted=(0,))
    found = operator_workspaces.workspace_bytes([call, alone])
    result = call.results.bytes
    # The workspace of the call is there before and after the result is made.
    assert found[call.key] <= found[alone.memory_key] <= found[call.key] + result
    assert operator_workspaces._remove_results([8], [8, -8, 16, 8, 24, -24]) == [8, -8, 16, 24, -24]
    assert operator_workspaces._remove_results([8, 8], [8, 8, 8, -8]) == [8, -8]
    changes = operator_workspaces._remove_results([100], [60, -60, 100])
    assert operator_workspaces._peak(changes) == 60


def test_gradients_of_parameters_are_left_out_of_the_calls_that_make_them():
    def products(uncounted: list[int]) -> list[OperatorCall]:
        backward = """
    b, tangent = args
    args.clear()
    return (torch.ops.aten.mm.default(b, b), torch.ops.aten.mm.default(b, b))
"""
        whole = step()
        whole.wrappers[1] = wrappers.wrapper(backward, whole.backward.inputs, is_backward=True)
        calls = replay(whole, uncounted).calls
        return [call for call in calls if isinstance(call, OperatorCall)]

    assert [call.uncounted for call in products([])] == [(), (), ()]
    assert [call.uncounted for call in products([1])] == [(), (), (0,)]
    assert products([1])[-1].memory_key != products([])[-1].memory_key
    assert products([1])[-1].key == products([])[-1].key


def test_an_operator_that_does_not_run_on_zeros_is_named(monkeypatch):
    monkeypatch.setattr(operator_workspaces, "_known", {})
    false = Form((), (), torch.bool, "cpu")
    call = OperatorCall(torch.ops.aten._assert_async.default, (false,), ())
    with pytest.raises(NotReplayedError, match="aten._assert_async.default does not run on zeros"):
        operator_workspaces.workspace_bytes([call])


def test_each_process_measures_each_call_once_and_keeps_no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(operator_workspaces, "_known", {})
    call, measured = convolution(), []
    measure = operator_workspaces._measure
    monkeypatch.setattr(operator_workspaces, "_measure", lambda calls: measured.append(1) or measure(calls))
    first = operator_workspaces.workspace_bytes([call])
    assert operator_workspaces.workspace_bytes([call]) == first
    assert len(measured) == 1
    operator_workspaces.workspace_bytes([convolution(16)])
    assert len(measured) == 2
    monkeypatch.setattr(torch, "__version__", "99.0")
    operator_workspaces.workspace_bytes([call])
    assert len(measured) == 3
    # A false size in a file would make a false promise.
    assert not (tmp_path / "kept").exists()
