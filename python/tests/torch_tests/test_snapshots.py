"""Recordings of PyTorch's allocator: read without running them, and compared with plans."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
from importlib import resources

import ckplan.torch
import pytest
import torch
from torch_tests.networks import Gpt
from torch_tests.recording import ADAM, Recorder
from torch_tests.schema import faults
from torch_tests.training import loss_of

from ckplan.torch import __main__ as command
from ckplan.torch.errors import SnapshotError
from ckplan.torch.estimation.events import trace
from ckplan.torch.snapshots import compare_step, comparison, planned_memory, snapshot_file
from ckplan.torch.snapshots.alignment import align
from ckplan.torch.snapshots.comparison import printable
from ckplan.torch.tracker import Tracker

MIB = 1 << 20
SCHEMA = json.loads(
    resources.files("ckplan.torch.snapshots").joinpath("comparison.schema.json").read_text()
)


# ---- Damaged files ----


class Calls:
    """Unpickling it would call a function."""

    def __init__(self, call, *arguments):
        self.row = call, arguments

    def __reduce__(self):
        return self.row


def whole(**changed):
    recorder = Recorder()
    recorder.allocate(0, 4096)
    return recorder.content() | changed


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_code_in_a_file_is_run(tmp_path, protocol):
    path, mark = tmp_path / "snapshot.pickle", tmp_path / "mark"
    for call in (Calls(os.mkdir, str(mark)), Calls(eval, "1"), Calls(getattr, 1, "real")):
        path.write_bytes(pickle.dumps(whole(segments=[call]), protocol))
        with pytest.raises(SnapshotError, match="names code to be called"):
            snapshot_file.read(path)
    assert not mark.exists()
    path.write_bytes(b"cos\nsys\x1b[2Jtem\n.")
    with pytest.raises(SnapshotError, match="names code to be called"):
        snapshot_file.read(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "its pickle is cut off"),
        (b"\x89PNG\r\n\x1a\n", "'P', is not part of a pickle|outside the file"),
        (b"PK\x03\x04", "outside the file"),
        (pickle.dumps(whole())[:-9], "cut off"),
        (b"Psomething\n.", "byte 0 refers to something outside the file"),
        # Bytes of four gigabytes, in a file of fourteen.
        (b"\x80\x04\x8e" + struct.pack("<Q", 1 << 32) + b"abc", "not part of a pickle of plain"),
        # A memo with a place for each of four billion objects.
        (b"\x80\x02}r\xff\xff\xff\xff.", "refers to an object that is not there"),
        (pickle.dumps([1, 2]), "it is not a dictionary"),
        (pickle.dumps(whole(device_traces=[[], []])), "it has no history.*_record_memory_history"),
        (pickle.dumps(whole(device_traces=[3])), "not a list of lists"),
        (pickle.dumps(whole(device_traces=[[3]])), "an event is not a dictionary"),
        (
            pickle.dumps(whole(device_traces=[[{"action": "alloc", "addr": "x"}]])),
            "addr is not a whole number",
        ),
        (
            pickle.dumps(whole(device_traces=[[{"action": 3}]])),
            "the action of an event is not a string",
        ),
        (pickle.dumps(whole(segments=[{"device": 1, "address": 1}])), "blocks is not a list"),
        (
            pickle.dumps(whole(device_traces=[whole()["device_traces"][1]] * 2)),
            "of devices 0, 1: choose one with --device",
        ),
    ],
)
def test_other_files_are_refused_in_words(tmp_path, content, said):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match=f"snapshot.pickle.*: .*({said})"):
        snapshot_file.read(path)


def test_a_device_without_a_history_is_named(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(whole()))
    assert snapshot_file.read(path).device == snapshot_file.read(path, 1).device == 1
    with pytest.raises(SnapshotError, match="no history of device 0; it has that of 1"):
        snapshot_file.read(path, 0)


def test_what_is_in_memory_before_a_history_by_hand(tmp_path):
    recorder = Recorder()
    for key, size in enumerate([100, 5000, 3 * MIB]):
        recorder.allocate(key, size)
    before = len(recorder.events)
    recorder.free(1)
    recorder.allocate(3, 700)
    path = recorder.write(tmp_path / "snapshot.pickle", forget=before)
    assert snapshot_file.read(path).bytes_before() == 100 + 5000 + 3 * MIB


# ---- Matching allocations ----


def left_over(first, second):
    """Returns the least number that is left over, by a table in plain loops."""
    table = [[0] * (len(second) + 1)]
    for row, size in enumerate(first):
        line = [row + 1]
        for column, other in enumerate(second):
            same = table[row][column] if size == other else len(first) + len(second)
            line.append(min(table[row][column + 1] + 1, line[-1] + 1, same))
        table.append(line)
    return min(table[-1])


def test_as_few_allocations_as_possible_are_left_over():
    draw = random.Random(3)
    for _ in range(200):
        first = [draw.randrange(4) for _ in range(draw.randrange(9))]
        second = [draw.randrange(4) for _ in range(draw.randrange(14))]
        pairs = align(first, second)
        assert all(first[a] == second[b] for a, b in pairs)
        assert all(a < c and b < d for (a, b), (c, d) in zip(pairs, pairs[1:]))
        inside = sum(d - b - 1 for (_, b), (_, d) in zip(pairs, pairs[1:]))
        assert len(first) - len(pairs) + inside == left_over(first, second)


def test_of_equal_steps_the_last_is_found():
    assert align([3, 5, 3], [3, 5, 3, 9, 3, 5, 3]) == [(0, 4), (1, 5), (2, 6)]


# ---- A step beside its plan ----


def small_gpt():
    return Gpt(2, 64, 4, 128, 64, dropout=0.0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns the path of the plan that keeps everything of a small GPT."""
    found = ckplan.torch.estimate(
        small_gpt,
        (torch.zeros(4, 32, dtype=torch.long),),
        device="a100-40g",
        precision="fp32",
        loss=loss_of,
    )
    plan, graph = found.save(tmp_path_factory.mktemp("plan") / "gpt")
    assert (plan.name, graph.name) == ("gpt.plan.json", "gpt.graph.json")
    return plan


class Training:
    """Records steps of a plan as PyTorch would, with a difference in the last one."""

    def __init__(self, plan):
        self.plan = planned_memory.read(plan)
        self.recorder = Recorder()
        self.recorder.allocate(-1, 9 * MIB)  # Parameters.
        self.events = trace(self.plan.graph, self.plan.steps).events

    def step(self, change=None):
        """Records a step. ``change`` may return other events in place of one."""
        left = set()
        for position, event in enumerate(self.events):
            for key, size in (change and change(position, event)) or [(event.buffer, event.bytes)]:
                self.recorder.change(key, size)
                (left.add if size >= 0 else left.discard)(key)
        self.recorder.allocate(-2, 1000, ADAM)
        self.recorder.free(-2)
        for key in sorted(left):
            self.recorder.free(key)

    def comparison(self, folder, **options):
        path = self.recorder.write(folder / "snapshot.pickle")
        return compare_step.compare(snapshot_file.read(path), self.plan, **options)


def difference(found):
    peak = found.recorded_peak
    assert peak.recorded_bytes - peak.planned_bytes == sum(
        found.at_peak(cause)[0] for cause in comparison.CAUSES
    )
    content = json.loads(json.dumps(found.to_json()))
    assert faults(content, SCHEMA, SCHEMA) == []
    return [(row.cause, row.bytes, row.operation, row.module) for row in found.partings]


def test_a_step_as_planned_parts_nowhere(tmp_path, saved):
    training = Training(saved)
    training.step()
    training.step()
    found = training.comparison(tmp_path)
    assert difference(found) == []
    assert (found.step, found.steps) == (1, 2)
    assert found.matched == found.planned == found.recorded > 100
    assert found.before_bytes == 9 * MIB
    plan = json.loads(saved.read_text())
    peak = plan["result"]["peak_bytes"]
    assert found.planned_peak.planned_bytes == found.recorded_peak.recorded_bytes == peak
    assert found.planned_peak.run == found.recorded_peak.run == plan["peak"]["step"]
    assert "no differences" in str(found)


def largest(training):
    """Returns the buffer of the largest activation that is freed within the step."""
    freed = {event.buffer: -event.bytes for event in training.events if event.bytes < 0}
    return max(freed, key=lambda buffer: (freed[buffer], -buffer)), max(freed.values())


def test_each_way_to_part_is_found_with_its_operation_and_module(tmp_path, saved):
    training = Training(saved)
    buffer, size = largest(training)
    operation = training.plan.operation(training.plan.versions[buffer].made)
    end = len(training.events) - 1
    made = next(at for at, event in enumerate(training.events) if event.buffer == buffer)
    faulty = {
        "not planned": lambda at, event: (
            [(event.buffer, event.bytes), (10**6, 12345), (10**6, -1)] if at == made else None
        ),
        "not made": lambda _, event: [(10**6, 0), (10**6, -1)] if event.buffer == buffer else None,
        "freed later": lambda at, event: (
            [(10**6, 0), (10**6, -1)]
            if event.buffer == buffer and event.bytes < 0
            else [(event.buffer, event.bytes), (buffer, -size)]
            if at == end
            else None
        ),
    }
    for cause, change in faulty.items():
        training = Training(saved)
        training.step()
        training.step(change)
        found = training.comparison(tmp_path, step=1)
        size_then = 12345 if cause == "not planned" else size
        assert difference(found) == [(cause, size_then, operation.name, operation.module)], cause
        assert operation.module.startswith("layers.") or operation.module == "head"
        text = str(found)
        assert cause in text and operation.module in text


def test_what_is_freed_too_early_is_found(tmp_path, saved):
    training = Training(saved)
    buffer, size = largest(training)
    made = next(at for at, event in enumerate(training.events) if event.buffer == buffer)

    def change(at, event):
        if event.buffer == buffer and event.bytes < 0:
            return [(10**6, 0), (10**6, -1)]
        # Two allocations later it is gone, although the plan has it until the backward pass.
        return [(event.buffer, event.bytes), (buffer, -size)] if at == made + 3 else None

    training.step(change)
    found = training.comparison(tmp_path)
    (row,) = found.partings
    assert (row.cause, row.bytes) == ("freed earlier", size)
    assert row.run < row.until == training.plan.versions[buffer].last


def test_another_step_can_be_chosen(tmp_path, saved):
    training = Training(saved)
    training.step(
        lambda at, event: (
            [(event.buffer, event.bytes), (10**6, 77), (10**6, -1)] if at == 0 else None
        )
    )
    training.step()
    assert difference(training.comparison(tmp_path)) == []
    (row,) = training.comparison(tmp_path, step=0).partings
    assert (row.cause, row.bytes, row.place) == ("not planned", 77, "net.py:7 forward")
    with pytest.raises(SnapshotError, match="no step 2: its steps are 0 to 1"):
        training.comparison(tmp_path, step=2)


def test_a_step_in_eager_mode_on_a_cpu(tmp_path, saved):
    """The tracker measures what eager mode allocates; the plan is of the captured graph."""
    torch.manual_seed(1)
    model, batch = small_gpt(), torch.randint(128, (4, 32))
    tracker = Tracker()
    tracker.run(lambda _: loss_of(model(batch)).backward(), [batch, *model.parameters()])
    tracker.forget_dead()
    recorder = Recorder()
    for number, size in tracker.changes("cpu"):
        recorder.change(number, size)
    path = recorder.write(tmp_path / "snapshot.pickle")
    found = compare_step.compare(snapshot_file.read(path), planned_memory.read(saved))
    difference(found)
    assert found.recorded_peak.recorded_bytes == tracker.peak_bytes()
    assert found.matched > 0.8 * found.planned
    peaks = found.planned_peak.planned_bytes, tracker.peak_bytes()
    assert abs(peaks[0] - peaks[1]) < 0.1 * peaks[0]


# ---- The command line ----


def test_the_command_line(tmp_path, saved, capsys):
    training = Training(saved)
    buffer, _ = largest(training)
    made = next(at for at, event in enumerate(training.events) if event.buffer == buffer)
    training.step(
        lambda at, event: (
            [(event.buffer, event.bytes), (10**6, MIB), (10**6, -1)] if at == made else None
        )
    )
    path = training.recorder.write(tmp_path / "snapshot.pickle")
    asked = ["compare-snapshot", str(path), str(saved)]
    assert command.main(asked) == 0
    said = capsys.readouterr().out
    assert "not planned" in said and "net.py:7 forward" in said
    assert command.main([*asked, str(saved.with_name("gpt.graph.json")), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert faults(found, SCHEMA, SCHEMA) == []
    assert [row["bytes"] for row in found["partings"]] == [MIB]
    assert command.main(["schema", "compare-snapshot"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_refusals_of_the_command_line(tmp_path, saved, capsys):
    snapshot = Training(saved).recorder.write(tmp_path / "snapshot.pickle")
    alone = tmp_path / "alone.plan.json"
    alone.write_text(saved.read_text())
    damaged = tmp_path / "gpt.plan.json"
    document = json.loads(saved.read_text())
    document["result"]["peak_bytes"] += 1
    damaged.write_text(json.dumps(document))
    graph = str(saved.with_name("gpt.graph.json"))
    for arguments, code, said in [
        ([str(tmp_path / "none"), str(saved)], 3, "No such file"),
        ([str(snapshot), str(tmp_path / "none")], 3, "No such file"),
        ([str(snapshot), str(snapshot)], 3, "it is not JSON in UTF-8"),
        ([graph, str(saved)], 3, "is not a memory snapshot"),
        ([str(snapshot), str(alone)], 3, "gpt.graph.json"),
        ([str(snapshot), str(damaged), graph], 6, "fails the check"),
        ([str(snapshot), str(saved), "--step", "7"], 3, "no step 7"),
        ([str(snapshot), str(saved), "--device", "3"], 3, "no history of device 3"),
    ]:
        assert command.main(["compare-snapshot", *arguments]) == code, arguments
        error = capsys.readouterr().err
        assert said in error and error.startswith("ckplan.torch: "), (arguments, error)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "\0"])
def test_a_plan_whose_graph_has_no_possible_name(tmp_path, saved, name, capsys):
    snapshot = Training(saved).recorder.write(tmp_path / "snapshot.pickle")
    document = json.loads(saved.read_text())
    document["model"]["name"] = name
    plan = tmp_path / "gpt.plan.json"
    plan.write_text(json.dumps(document))
    assert command.main(["compare-snapshot", str(snapshot), str(plan)]) == 3
    assert "is not a valid file name" in capsys.readouterr().err


def test_names_from_files_cannot_control_a_terminal():
    assert printable("a\x1b[2J\n\u202eb") == "a\\x1b[2J\\n\\u202eb"
    assert printable("\ud800").encode() == b"\\ud800"
    assert len(printable("x" * 1000)) < 70
