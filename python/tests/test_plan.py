"""Tests ckplan.plan, and the program as python -m ckplan."""

import json
import subprocess
import sys
from pathlib import Path

import ckplan
import pytest

TESTDATA = Path(__file__).parents[2] / "testdata"
MODEL = TESTDATA / "models" / "tiny_mlp.onnx"
JOINT = TESTDATA / "graphs" / "joint_small.json"
# Six operations in a row; the program derives their backward pass.
CHAIN = TESTDATA / "graphs" / "chain.json"


def test_a_model_by_its_path():
    plan = ckplan.plan(MODEL, budget="80%", algo="approx-dp", dim={"N": 64})
    assert plan["model"]["name"] == "tiny_mlp.onnx"
    assert plan["model"]["dims"] == {"N": 64}
    assert plan["request"]["algorithm"] == "approx-dp"
    assert plan["result"]["peak_bytes"] <= plan["request"]["budget_bytes"]


def test_bytes_of_a_model_give_the_plan_of_its_path():
    by_path = ckplan.plan(MODEL, budget="80%", dim={"N": 64})
    by_bytes = ckplan.plan(MODEL.read_bytes(), budget="80%", dim={"N": 64})
    assert by_bytes.pop("model")["sha256"] == by_path.pop("model")["sha256"]
    assert by_bytes == by_path


@pytest.mark.parametrize(
    "form", [Path, str, Path.read_bytes, lambda path: json.loads(path.read_text())]
)
def test_a_joint_graph_in_every_form(form):
    plan = ckplan.plan(form(JOINT), budget=12000, algo="best")
    assert plan["request"]["budget_bytes"] == 12000
    assert plan["result"]["peak_bytes"] <= 12000
    assert {step[0] for step in plan["schedule"]["steps"]} == {"r"}


def test_a_path_that_begins_with_a_dash(tmp_path, monkeypatch):
    (tmp_path / "-odd.json").write_bytes(JOINT.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert ckplan.plan("-odd.json", budget="100%", algo="keep-all")["result"]


def test_a_budget_below_the_least():
    with pytest.raises(ckplan.InfeasibleError, match="its smallest plan needs 11.72 KiB") as caught:
        ckplan.plan(JOINT, budget=1, algo="best")
    assert caught.value.exit_code == 4
    assert caught.value.kind == "infeasible"
    least = caught.value.least_bytes
    assert caught.value.remedy == {
        "advice": "try",
        "settings": [{"field": "budget", "flag": "--budget", "value": str(least)}],
    }
    assert ckplan.plan(JOINT, budget=least, algo="best")["result"]["peak_bytes"] <= least


@pytest.mark.parametrize(
    ("source", "options", "exit_code", "message"),
    [
        (MODEL, {"budget": "80%"}, 2, "open dimensions: N"),
        (JOINT, {"budget": "80%", "algo": "no-such"}, 2, "no-such"),
        (JOINT, {"budgets": "80%"}, 2, "unknown option"),
        (TESTDATA / "no such file", {"budget": "80%"}, 3, "no such file"),
        (b"neither ONNX nor JSON", {"budget": "80%"}, 3, "model.onnx"),
        ({"name": "no operations"}, {"budget": "80%"}, 3, "stdin"),
    ],
)
def test_a_refusal_has_the_program_s_message(source, options, exit_code, message):
    with pytest.raises(ckplan.PlanError, match=message) as caught:
        ckplan.plan(source, **options)
    assert caught.value.exit_code == exit_code
    assert not isinstance(caught.value, ckplan.InfeasibleError)
    assert not str(caught.value).startswith("ckplan:")


def test_an_error_says_which_flags_would_help():
    with pytest.raises(ckplan.PlanError) as caught:
        ckplan.plan(MODEL, budget="80%")
    assert caught.value.kind == "usage"
    assert caught.value.least_bytes is None
    assert caught.value.remedy["settings"] == [{"field": "dims", "flag": "-D", "value": "N=..."}]


def test_what_is_no_message_of_the_program_is_passed_on(monkeypatch, tmp_path):
    program = tmp_path / "ckplan"
    lines = ["#!/bin/sh", "echo '{\"level\": 3' >&2", "echo 'ld.so: broken' >&2", "exit 127"]
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    monkeypatch.setenv("CKPLAN_PROGRAM", str(program))
    with pytest.raises(ckplan.PlanError, match="ld.so: broken") as caught:
        ckplan.plan(CHAIN)
    assert caught.value.exit_code == 127
    assert caught.value.kind == ""


def test_notes_are_no_warnings(recwarn):
    assert ckplan.plan(TESTDATA / "graphs" / "skips.json", budget="90%", algo="auto")["result"]
    assert not recwarn.list


def test_options_become_flags():
    options = {"no_liveness": True, "align": None, "optimizer": "adam"}
    plan = ckplan.plan(CHAIN, budget="100%", algo="approx-dp", **options)
    assert plan["request"]["liveness"] is False
    assert plan["request"]["optimizer"] == "adam"
    assert plan["request"]["align_bytes"] == 1


@pytest.mark.parametrize(
    "options",
    [{"output": "x"}, {"format": "md"}, {"messages": "text"}, {"budget": 0.6}, {"align": [1.5]}],
)
def test_options_that_are_refused_here(options):
    with pytest.raises(TypeError, match=next(iter(options))):
        ckplan.plan(CHAIN, **options)


@pytest.mark.parametrize("flag", ["budget", "budget_total"])
def test_a_number_below_one_is_answered_with_the_share_that_it_may_mean(flag):
    with pytest.raises(TypeError, match=f"'{flag}' must be .*, not 0.35; did you mean \"35%\"[?]$"):
        ckplan.plan(CHAIN, **{flag: 0.35})
    with pytest.raises(TypeError, match="not 1.5$"):
        ckplan.plan(CHAIN, **{flag: 1.5})


def test_a_warning_of_the_program_is_one_of_python():
    with pytest.warns(ckplan.PlanWarning, match="no trained parameter was found"):
        ckplan.plan(model_without_parameters(), budget="100%")


def model_without_parameters():
    """Returns the bytes of an ONNX model of one Relu, so that the package onnx is not needed."""

    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def tensor(name):
        dim = field(1, bytes([1 << 3, 4]))
        return field(1, name) + field(2, field(1, bytes([1 << 3, 1]) + field(2, dim)))

    node = field(1, b"x") + field(2, b"y") + field(3, b"relu") + field(4, b"Relu")
    graph = field(1, node) + field(2, b"g") + field(11, tensor(b"x")) + field(12, tensor(b"y"))
    opset = field(8, bytes([2 << 3, 20]))
    return bytes([1 << 3, 10]) + field(7, graph) + opset


def test_plans_are_the_same_every_time():
    plans = [ckplan.plan(JOINT, budget="min", algo="best") for _ in range(2)]
    assert plans[0] == plans[1]


def run_module(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ckplan", *arguments], capture_output=True, text=True, check=False
    )


def test_the_module_is_the_program():
    direct = subprocess.run(
        [ckplan.find_program(), "algos"], capture_output=True, text=True, check=True
    )
    assert run_module("algos").stdout == direct.stdout
    assert run_module("no such command").returncode == 2


def test_the_module_without_a_program(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPLAN_PROGRAM", str(tmp_path / "none"))
    done = run_module("--version")
    assert done.returncode == 1
    assert done.stderr.startswith("ckplan: CKPLAN_PROGRAM=")
