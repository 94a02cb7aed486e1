"""What a plan of a joint graph allocates and frees, by hand and against the program's own peak."""

from __future__ import annotations

import ckplan
import pytest

from ckplan.torch.estimation.allocator import Event
from ckplan.torch.estimation.allocator_steps import simulate_steps
from ckplan.torch.estimation.events import peak, trace
from ckplan.torch.estimation.optimizers import OptimizerMemory
from ckplan.torch.graph import CONSTANT, JointGraph, Operation

MIB = 1 << 20


def graph_of(rows, sizes, results=(), aliases=None):
    """Makes a graph: ``rows`` are (reads, writes) of operations, ``sizes`` bytes of values."""
    graph = JointGraph()
    for position, size in enumerate(sizes):
        kind = CONSTANT if size is None else "value"
        alias_of = (aliases or {}).get(position)
        graph.add_value(f"v{position}", size or 0, kind, alias_of)
    for position, (reads, writes) in enumerate(rows):
        graph.operations.append(Operation(position, None, list(reads), list(writes), cost=1))
    graph.results = list(results)
    return graph


#   x -> 0: a(4) -> 1: b(2) -> 2: c(8) reads a and b; c is the result.
CHAIN = graph_of([([0], [1]), ([1], [2]), ([1, 2], [3])], [None, 4, 2, 8], results=[3])


def test_buffers_live_from_their_run_to_their_last_read():
    found = trace(CHAIN, [0, 1, 2])
    assert found.events == [
        Event(0, 4),
        Event(1, 2),
        Event(2, 8),
        Event(0, -4),
        Event(1, -2),
    ]
    assert found.left == {2: 3}
    assert peak(found.events) == (14, 2)


def test_a_second_run_makes_another_buffer():
    #   a, b, a again: the first a dies when b has read it.
    found = trace(CHAIN, [0, 1, 0, 2])
    assert found.events[:4] == [Event(0, 4), Event(1, 2), Event(0, -4), Event(2, 4)]
    assert found.num_buffers == 4


def test_a_workspace_lives_within_each_run_of_its_operation():
    #   b takes 5 beside a and its own result, in both of its runs.
    found = trace(CHAIN, [0, 1, 1, 2], workspaces={1: 5})
    assert found.events[:4] == [Event(0, 4), Event(1, 2), Event(4, 5), Event(4, -5)]
    assert [event.bytes for event in found.events if event.buffer == 5] == [5, -5]
    assert found.num_buffers == 6
    assert peak(trace(CHAIN, [0, 1, 2], workspaces={1: 30}).events) == (36, 2)


def test_an_alias_keeps_its_base():
    #   0: a(4); 1: view of a; 2: b(2) reads nothing else; 3: c(1) reads the view.
    rows = [([], [0]), ([0], [1]), ([], [2]), ([1, 2], [3])]
    graph = graph_of(rows, [4, 0, 2, 1], results=[3], aliases={1: 0})
    assert peak(trace(graph, [0, 1, 2, 3]).events) == (7, 2)


def test_a_value_that_nothing_reads_dies_at_once():
    graph = graph_of([([], [0, 1]), ([0], [2])], [4, 16, 1], results=[2])
    assert peak(trace(graph, [0, 1]).events) == (20, 1)
    assert trace(graph, [0, 1]).events[2] == Event(1, -16)


@pytest.mark.parametrize("algorithm", ["keep-all", "best"])
def test_the_peak_is_that_of_the_program(algorithm):
    plan = ckplan.plan(CHAIN.to_json(), algo=algorithm)
    steps = [step[1] for step in plan["schedule"]["steps"]]
    assert peak(trace(CHAIN, steps).events)[0] == plan["result"]["peak_bytes"]


def rehearse_one_parameter(**options):
    """One parameter of 30 MiB under an optimizer with two states and a copy of the gradient."""
    graph = graph_of([([], [0]), ([0], [1])], [40 * MIB, 30 * MIB], results=[1])
    optimizer = OptimizerMemory(
        "adam", "test", [30 * MIB, 30 * MIB], [Event(0, 30 * MIB), Event(0, -30 * MIB)]
    )
    return simulate_steps([30 * MIB], trace(graph, [0, 1]), optimizer, **options)


def test_a_rehearsal_holds_gradients_state_and_temporaries_at_once():
    held = rehearse_one_parameter()
    # The backward pass of the second step: parameter, states, activation and gradient.
    assert held.requested_bytes == (30 + 60 + 40 + 30) * MIB
    assert held.allocated_bytes == held.requested_bytes
    # Segments of 30 for the parameter, the gradient, a state and the temporary, 40 for the
    # activation of the first step, whose place the other state takes, and so 40 for that of the
    # second.
    assert held.reserved_bytes == (4 * 30 + 40 + 40) * MIB
    assert held.kept_bytes == held.reserved_bytes - held.requested_bytes


def test_a_rehearsal_gives_segments_back_where_memory_ends():
    # In the second step 60 of 160 MiB are free, in two segments of 30: they make room for one of
    # 40, and the gradient then needs one of 30 again.
    assert rehearse_one_parameter(capacity=170 * MIB).reserved_bytes == 170 * MIB
    # A MiB less, and it does not fit: what it would need is shown.
    assert rehearse_one_parameter(capacity=169 * MIB).reserved_bytes == 170 * MIB


def test_a_rehearsal_frees_gradients_between_steps():
    graph = graph_of([([], [0])], [10 * MIB], results=[0])
    held = simulate_steps([], trace(graph, [0]), OptimizerMemory("sgd", "test"))
    assert held.requested_bytes == held.reserved_bytes == 10 * MIB
