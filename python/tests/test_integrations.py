"""Tests the files that other systems read at the top: the hook, the action, the citation."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import ckplan
import pytest

ROOT = Path(__file__).parents[2]
GRAPHS = ROOT / "testdata" / "graphs"


def field_of(file: str, name: str) -> str:
    """Returns the text of a YAML field that is on one line."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return re.search(rf"^\s*(?:- )?{name}: (.*)$", text, re.MULTILINE)[1]


def script_of_check() -> str:
    """Returns the script by which action.yml runs ckplan check: the last of the file."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    return text.rsplit("run: |\n", 1)[1]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a committed plan beside its model, as docs/ci.md lays it out."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ckplan").symlink_to(ckplan.find_program())
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    repository = tmp_path / "repository"
    (repository / "models").mkdir(parents=True)
    monkeypatch.chdir(repository)
    shutil.copy(GRAPHS / "net.json", "models/net.json")
    run(["ckplan", "models/net.json", "--algo", "exact-dp", "-q", "-o", "models/net.plan.json"])
    run(["git", "init", "--quiet"])
    run(["git", "add", "."])
    return repository


def run(words: list[str]) -> None:
    subprocess.run(words, check=True)


def run_hook(*arguments: str) -> subprocess.CompletedProcess[str]:
    # pre-commit splits the entry as a shell does, and appends the user's arguments.
    words = shlex.split(field_of(".pre-commit-hooks.yaml", "entry"))
    return subprocess.run([*words, *arguments], capture_output=True, text=True)


def run_action(arguments: str) -> subprocess.CompletedProcess[str]:
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script_of_check()]
    environment = {**os.environ, "ARGUMENTS": arguments}
    return subprocess.run(words, env=environment, capture_output=True, text=True)


def test_the_hook_passes_plans_of_the_models_beside_them(repository):
    done = run_hook()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_hook_refuses_a_plan_whose_model_has_changed(repository):
    shutil.copy(GRAPHS / "net_grown.json", "models/net.json")
    done = run_hook()
    assert done.returncode != 0
    assert "models/net.plan.json: the plan is for another model" in done.stderr


def test_the_hook_takes_limits_and_those_of_the_settings_file_hold_too(repository):
    Path("ckplan.toml").write_text('[check]\nfail-on = ["overhead>50%"]\n', encoding="utf-8")
    assert run_hook("--fail-on", "peak>1GiB").returncode == 0
    assert "violates 1 of 2 limits" in run_hook("--fail-on", "peak>1kB").stderr
    Path("ckplan.toml").write_text('[check]\nfail-on = ["peak>1kB"]\n', encoding="utf-8")
    assert "violates 1 of 2 limits" in run_hook("--fail-on", "peak>1GiB").stderr


def test_the_hook_passes_a_repository_without_plans(repository):
    run(["git", "rm", "--quiet", "--cached", "models/net.plan.json"])
    assert run_hook().returncode == 0


@pytest.mark.parametrize(
    ("path", "is_run"),
    [
        ("models/net.plan.json", True),
        ("models/net.onnx", True),
        ("ckplan.toml", True),
        ("train/ckplan.toml", True),
        ("my-ckplan.toml", False),
        ("README.md", False),
    ],
)
def test_the_hook_runs_for_what_can_make_a_plan_wrong(path, is_run):
    pattern = field_of(".pre-commit-hooks.yaml", "files")
    assert (re.search(pattern, path) is not None) == is_run


def test_the_action_expands_patterns_and_annotates(repository):
    done = run_action("models/*.plan.json --fail-on peak>1GiB")
    assert (done.returncode, done.stderr) == (0, "")
    done = run_action("models/*.plan.json --fail-on peak>1kB")
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=models/net.plan.json,")


def test_the_action_runs_no_command_of_its_arguments(repository):
    assert run_action("models/net.plan.json; touch made $(touch made)").returncode != 0
    assert not Path("made").exists()


def test_the_citation_is_of_this_version():
    assert field_of("CITATION.cff", "cff-version") == "1.2.0"
    assert field_of("CITATION.cff", "version") == ckplan.__version__
    assert field_of("CITATION.cff", "license") == "Apache-2.0"
    assert {"message", "title", "authors"} <= {
        line.split(":")[0] for line in (ROOT / "CITATION.cff").read_text().splitlines()
    }
