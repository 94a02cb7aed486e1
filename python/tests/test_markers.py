"""Tests that python/examples/replay_markers.py finds the plans' own steps in annotated models."""

import importlib.util
import json
import subprocess
from collections import Counter
from pathlib import Path

import ckplan
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not there: pip install onnx")

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "testdata" / "models"

spec = importlib.util.spec_from_file_location(
    "replay_markers", ROOT / "python" / "examples" / "replay_markers.py"
)
replay_markers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replay_markers)


def run(*arguments):
    command = [str(ckplan.find_program()), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


ALGORITHMS = {
    row["name"]: row
    for row in json.loads(run("algos", "--format", "json").stdout)
    if row["name"] not in ("given", "auto")
}
NEED_A_LINK = [name for name, row in ALGORITHMS.items() if row["needs_link"]]
# Models with branches, sums, views and statistics.
SMALL = [
    ("tiny_mlp.onnx", ["-D", "N=64"]),
    ("light_zfnet512.onnx", []),
    ("squeezenet1_1.onnx", ["-D", "N=2"]),
    ("resnet18.onnx", ["-D", "N=2"]),
]
TOO_LARGE_FOR = {
    "checkmate": ["squeezenet1_1.onnx", "resnet18.onnx"],
    "kusumoto-exhaustive": ["squeezenet1_1.onnx", "resnet18.onnx"],
}


def annotate(model, flags, folder):
    """Plans the model. Returns the plan and the annotated model, or None if no plan fits."""
    planned = folder / "planned.onnx"
    plan = folder / "plan.json"
    done = run("plan", model, *flags, "-q", "-o", plan, "--emit", f"onnx={planned}")
    if done.returncode == 4:
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(plan.read_text()), onnx.load(planned, load_external_data=False)


def names_in_file(nodes, model):
    """Returns the number of each node and the place of each result, as in the markers."""
    places = {
        name: (str(number), f"o{position}")
        for number, node in enumerate(model.graph.node)
        for position, name in enumerate(node.output)
    }
    number, place = {}, {}
    for node in nodes:
        names = [output["name"] for output in node["outputs"]]
        number[node["id"]] = next(places[name][0] for name in names if name in places)
        for output in node["outputs"]:
            place[output["id"]] = places.get(output["name"], (number[node["id"]], "s"))
    return number, place


def steps_of_plan(plan, model):
    """Returns the steps of the plan file, with nodes and results named as in the markers."""
    if "offload" in plan["request"]:
        return steps_of_joint_plan(plan, model)
    number, place = names_in_file(plan["nodes"], model)
    kinds = {"f": "forward", "b": "backward", "loss": "loss", "free": "free"}
    steps = []
    for kind, *what in plan["schedule"]["steps"]:
        if kind == "free-gradient":
            continue  # Markers leave gradients to the reader.
        if kind == "free":
            steps.append(("free", *place[what[0]]))
        else:
            steps.append((kinds[kind], *(number[n] for n in what)))
    return steps


def steps_of_joint_plan(plan, model):
    """Does so for a plan with a link. Its operations are the nodes forward, the loss, and the nodes
    backward in reverse, and it copies results of nodes and gradients of these."""
    nodes = len(plan["nodes"]) // 2
    number, place = names_in_file(plan["nodes"][:nodes], model)
    by_name = {
        output["name"]: place[output["id"]]
        for node in plan["nodes"][:nodes]
        for output in node["outputs"]
    }
    for node in plan["nodes"][nodes:]:
        for output in node["outputs"]:
            of = by_name.get(output["name"].removeprefix("gradient of "))
            if of:
                place[output["id"]] = (of[0], of[1].replace("o", "g"))
    steps = []
    for kind, what in plan["schedule"]["steps"]:
        if kind != "r":
            steps.append((kind, *place[what]))
        elif what == nodes:
            steps.append(("loss",))
        elif what < nodes:
            steps.append(("forward", number[what]))
        else:
            steps.append(("backward", number[2 * nodes - what]))
    return steps


def steps_of_markers(model):
    steps = []
    for step in replay_markers.MarkedModel(model).steps():
        if step.moves:
            steps.append((step.kind, *step.moves))
        elif step.kind == "free":
            steps.append(("free", *step.frees[0]))
        else:
            steps.append((step.kind, step.node) if step.node else (step.kind,))
    return steps


def has_steps(model):
    return any(entry.key == "ckplan.steps" for entry in model.metadata_props)


def check_that_reads_are_there(model):
    """Replays the step: every read finds its value in memory, and no value is left at the end."""
    marked = replay_markers.MarkedModel(model)
    there, read = set(), set()
    for step in marked.steps():
        assert there.issuperset(step.reads), step
        read.update(step.reads)
        if step.kind == "forward":
            there.update(marked._makes(int(step.node)))
        if step.kind == "in":
            there.update(marked._results_moved(step))
        assert there.issuperset(step.frees), step
        there.difference_update(step.frees)
    assert read
    assert there.isdisjoint(read)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_markers_of_every_algorithm_are_its_steps(algorithm, tmp_path):
    seen = 0
    for name, flags in SMALL:
        if name in TOO_LARGE_FOR.get(algorithm, []):
            continue
        for budget in ("60%", "100%"):
            limits = ["--algo", algorithm, "--budget", budget]
            if algorithm in NEED_A_LINK:
                limits += ["--offload", "pcie5"]
            if algorithm == "best":
                limits += ["--effort", "quick"]
            found = annotate(MODELS / name, [*flags, *limits], tmp_path)
            if found is None:
                continue
            plan, model = found
            assert steps_of_markers(model) == steps_of_plan(plan, model), (name, budget)
            check_that_reads_are_there(model)
            seen += 1
    assert seen > 0


def test_steps_in_a_free_order(tmp_path):
    flags = ["-D", "N=1", "--budget", "50%", "--order", "free", "--effort", "quick"]
    plan, model = annotate(MODELS / "unet_572.onnx", flags, tmp_path)
    backward = [what for kind, *what in plan["schedule"]["steps"] if kind == "b"]
    forward = list(dict.fromkeys(w[0] for k, *w in plan["schedule"]["steps"] if k == "f"))
    assert [n for (n,) in backward] != forward[::-1], "the order is the model's own"
    assert has_steps(model)
    assert steps_of_markers(model) == steps_of_plan(plan, model)
    check_that_reads_are_there(model)


def kinds_of_copies(steps):
    return Counter(kind for kind, *_ in steps if kind in ("out", "drop", "in"))


def copied(model, flags, folder):
    """Returns the annotated model of a plan that copies results to the host."""
    found = annotate(model, [*flags, "--algo", "offload-largest", "--offload", "pcie5"], folder)
    assert found
    return found


def test_copies_to_the_host_are_steps(tmp_path):
    plan, model = copied(MODELS / "resnet18.onnx", ["-D", "N=8", "--budget", "70%"], tmp_path)
    steps = steps_of_markers(model)
    copies = kinds_of_copies(steps)
    assert copies["out"] == copies["drop"] >= 1
    assert copies["in"] >= 1
    assert steps == steps_of_plan(plan, model)
    check_that_reads_are_there(model)
    marked = replay_markers.MarkedModel(model)
    assert marked.markers["ckplan.schema_version"] == "3.0"
    offloaded = {
        int(step.moves.node)
        for step in marked.steps()
        if step.kind == "out" and step.moves.place.startswith(("o", "s"))
    }
    actions = {n: markers.get("ckplan.action") for n, markers in enumerate(marked.of_node)}
    assert {n for n, action in actions.items() if action == "offload"} == offloaded
    # Without the copy back, a read of a dropped value finds nothing.
    for entry in model.metadata_props:
        if entry.key == "ckplan.steps":
            before, _, after = entry.value.partition(" in ")
            entry.value = f"{before} {after.partition(' ')[2]}"
    with pytest.raises(AssertionError):
        check_that_reads_are_there(model)


def test_gradients_are_copied_by_name(tmp_path):
    flags = ["-D", "N=64", "--algo", "given", "--budget", "100%", "--offload", "pcie5"]
    nodes = 13
    order = [["r", n] for n in range(2 * nodes + 1)]
    decisions = tmp_path / "decisions.json"
    order[nodes + 2 : nodes + 2] = [["out", "gradient of a5"], ["drop", "gradient of a5"]]
    order[nodes + 4 : nodes + 4] = [["in", "gradient of a5"]]
    decisions.write_text(json.dumps({"order": order}))
    found = annotate(MODELS / "tiny_mlp.onnx", [*flags, "--decisions", decisions], tmp_path)
    plan, model = found
    steps = steps_of_markers(model)
    assert steps == steps_of_plan(plan, model)
    assert [step for step in steps if step[0] in ("out", "drop", "in")] == [
        ("out", "11", "g0"),
        ("drop", "11", "g0"),
        ("in", "11", "g0"),
    ]


@pytest.mark.parametrize("damage", ["in", "drop", "out", "keep"])
def test_damaged_copies_are_found(damage, tmp_path):
    _, model = copied(MODELS / "tiny_mlp.onnx", ["-D", "N=64", "--budget", "60%"], tmp_path)
    planned = tmp_path / "planned.onnx"
    assert run("check", planned).returncode == 0
    if damage == "keep":
        node = next(
            entry
            for node in model.graph.node
            for entry in node.metadata_props
            if entry.value == "offload"
        )
        node.value = "keep"
    else:
        steps = next(entry for entry in model.metadata_props if entry.key == "ckplan.steps")
        assert f" {damage} " in steps.value
        steps.value = steps.value.replace(f" {damage} ", " ", 1)
    onnx.save(model, planned)
    checked = run("check", planned)
    assert checked.returncode == 6
    key = "ckplan.action" if damage == "keep" else "ckplan.steps"
    assert f"marker {key} is" in checked.stderr + checked.stdout


def test_several_reruns_of_a_node(tmp_path):
    flags = ["-D", "N=2", "--algo", "dtr", "--budget", "min"]
    plan, model = annotate(MODELS / "resnet18.onnx", flags, tmp_path)
    assert max(node["recompute_count"] for node in plan["nodes"]) > 1
    assert has_steps(model)
    assert steps_of_markers(model) == steps_of_plan(plan, model)
    check_that_reads_are_there(model)


def test_frees_that_are_steps(tmp_path):
    flags = ["-D", "N=2", "--algo", "chen-sqrt", "--budget", "100%", "--no-liveness"]
    plan, model = annotate(MODELS / "resnet18.onnx", flags, tmp_path)
    steps = steps_of_markers(model)
    assert steps == steps_of_plan(plan, model)
    assert Counter(kind for kind, *_ in steps)["free"] > 0
    check_that_reads_are_there(model)


def test_ordinary_plans_carry_no_steps(tmp_path):
    for algorithm in (
        "keep-all",
        "recompute-all",
        "chen-sqrt",
        "approx-dp",
        "chen-drop-bn-relu",
    ):
        flags = ["-D", "N=2", "--algo", algorithm, "--budget", "100%"]
        _, model = annotate(MODELS / "resnet18.onnx", flags, tmp_path)
        assert not has_steps(model), algorithm


def test_a_stage_of_a_pipeline(tmp_path):
    flags = ["-D", "N=2", "--algo", "recompute-all", "--budget", "100%"]
    flags += ["--pipeline", "2/1", "--micro-batches", "4"]
    plan, model = annotate(MODELS / "resnet18.onnx", flags, tmp_path)
    assert steps_of_markers(model) == steps_of_plan(plan, model)
    check_that_reads_are_there(model)


def test_operations_of_a_call_are_numbered(tmp_path):
    text = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
        g (float[64,4] x) => (float[64,4] y) <float[4] w = {1,2,3,4}>
        { h = Mul(x, w) s = local.Twice(h) y = Mul(s, h) }
        <opset_import: ["" : 20], domain: "local"> Twice (a) => (b) { t = Sigmoid(a) b = Tanh(t) }"""
    source = tmp_path / "calls.onnx"
    source.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    _, model = annotate(source, ["--algo", "recompute-all", "--budget", "100%"], tmp_path)
    steps = steps_of_markers(model)
    assert steps[:5] == [("forward", node) for node in ("0", "1.0", "1.1", "2")] + [("loss",)]
    assert ("backward", "1.1") in steps
