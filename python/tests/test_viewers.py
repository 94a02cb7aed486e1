"""Reads files for other viewers with those viewers' own programs.

PyTorch contains a reader of memory snapshots, and the package perfetto from PyPI, which
python/requirements/test.txt names, has Perfetto's messages. Perfetto's trace processor is a program
that the package downloads when it is first used; its tests are skipped, with a reason, if it is not
in PATH.
"""

import pickle
import shutil
import subprocess
from pathlib import Path

import ckplan
import pytest

TESTDATA = Path(__file__).parents[2] / "testdata"
MODEL = TESTDATA / "models" / "tiny_mlp.onnx"
JOINT = TESTDATA / "graphs" / "joint_small.json"
SOURCES = pytest.mark.parametrize(
    "source", [[MODEL, "-D", "N=64"], [JOINT]], ids=["model", "joint-graph"]
)


def emit(form, source, folder):
    """Plans the source. Returns the plan's peak, its number of steps, and the emitted file."""
    file = folder / "out"
    plan_file = folder / "plan.json"
    command = [ckplan.find_program(), "plan", *source, "--budget", "90%", "-q", "-o", plan_file]
    subprocess.run([*map(str, command), "--emit", f"{form}={file}"], check=True)
    plan = ckplan.plan(source[0], budget="90%", **({"dim": {"N": 64}} if "-D" in source else {}))
    return plan["result"]["peak_bytes"], len(plan["schedule"]["steps"]), file


@SOURCES
def test_torch_reads_the_snapshot(source, tmp_path):
    viewer = pytest.importorskip("torch.cuda._memory_viz", reason="PyTorch is not there")
    peak, _, file = emit("memory-viz", source, tmp_path)
    snapshot = pickle.loads(file.read_bytes())
    assert "total_reserved" in viewer.segsum(snapshot)
    assert "cudaMalloc" in viewer.trace(snapshot)
    assert "snapshot.pickle" in viewer.trace_plot(snapshot)
    arena = snapshot["segments"][0]["address"]
    live = highest = 0
    for event in snapshot["device_traces"][0]:
        if event["addr"] >= arena + snapshot["segments"][0]["total_size"]:
            continue
        live += {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"], 0)
        highest = max(highest, live)
    assert highest == peak


@SOURCES
def test_perfettos_messages_hold_the_trace(source, tmp_path):
    messages = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="the package perfetto is not there: pip install perfetto",
    )
    peak, steps, file = emit("perfetto", source, tmp_path)
    trace = messages.Trace.FromString(file.read_bytes())
    events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
    slices = [event for event in events if event.type == event.TYPE_SLICE_BEGIN]
    assert len(slices) == steps
    tracks = [packet.track_descriptor for packet in trace.packet if packet.track_descriptor.uuid]
    memory = next(track for track in tracks if track.name == "memory")
    assert memory.counter.unit == memory.counter.UNIT_SIZE_BYTES
    values = [event.counter_value for event in events if event.track_uuid == memory.uuid]
    assert max(values) == peak


@SOURCES
def test_the_trace_processor_reads_the_trace(source, tmp_path):
    processor = pytest.importorskip(
        "perfetto.trace_processor", reason="the package perfetto is not there: pip install perfetto"
    )
    program = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if program is None:
        pytest.skip("Perfetto's trace_processor_shell is not in PATH")
    peak, steps, file = emit("perfetto", source, tmp_path)
    config = processor.TraceProcessorConfig(bin_path=program)
    with processor.TraceProcessor(trace=str(file), config=config) as trace:
        (slices,) = trace.query("select count(*) as n from slice")
        assert slices.n == steps
        (memory,) = trace.query(
            "select max(value) as peak from counter join counter_track on"
            " counter.track_id = counter_track.id where counter_track.name = 'memory'"
        )
        assert memory.peak == peak
        (errors,) = trace.query(
            "select coalesce(sum(value), 0) as n from stats where severity = 'error'"
        )
        assert errors.n == 0
