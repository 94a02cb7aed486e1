"""Tests how the programs are found."""

import os
import stat
import subprocess
from pathlib import Path

import ckplan
import pytest
from ckplan import program


def make_program(path: Path, content: bytes = b"\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Sets no variable, puts no program into the package, and makes PATH an empty folder."""
    monkeypatch.delenv("CKPLAN_PROGRAM", raising=False)
    monkeypatch.delenv("CKEXEC_PROGRAM", raising=False)
    monkeypatch.setattr(program, "__file__", str(tmp_path / "package" / "program.py"))
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_the_variable_wins(nowhere, monkeypatch):
    make_program(nowhere / "package" / "bin" / "ckplan")
    mine = make_program(nowhere / "mine" / "ckplan")
    monkeypatch.setenv("CKPLAN_PROGRAM", str(mine))
    assert ckplan.find_program() == mine


def test_a_variable_that_names_no_program_is_an_error(nowhere, monkeypatch):
    make_program(nowhere / "package" / "bin" / "ckplan")
    monkeypatch.setenv("CKPLAN_PROGRAM", str(nowhere / "misspelt"))
    with pytest.raises(ckplan.ProgramNotFoundError, match="CKPLAN_PROGRAM=.*misspelt"):
        ckplan.find_program()


def test_the_package_comes_before_path(nowhere):
    make_program(nowhere / "path" / "ckplan")
    packaged = make_program(nowhere / "package" / "bin" / "ckplan")
    assert ckplan.find_program() == packaged


def test_path_is_searched_last(nowhere):
    found = make_program(nowhere / "path" / "ckplan")
    assert ckplan.find_program() == found


def test_each_program_has_its_own_variable(nowhere, monkeypatch):
    mine = make_program(nowhere / "mine" / "ckexec")
    monkeypatch.setenv("CKEXEC_PROGRAM", str(mine))
    assert ckplan.find_program("ckexec") == mine
    with pytest.raises(ckplan.ProgramNotFoundError, match="ckplan not found"):
        ckplan.find_program()


def test_a_script_on_path_is_passed_over(nowhere, monkeypatch):
    """This package's own entry point calls find_program, which must not find that entry point."""
    make_program(nowhere / "first" / "ckplan", b"#!/usr/bin/python3\n")
    found = make_program(nowhere / "second" / "ckplan")
    monkeypatch.setenv("PATH", os.pathsep.join([str(nowhere / "first"), str(nowhere / "second")]))
    assert ckplan.find_program() == found


def test_the_version_is_the_program_s():
    output = subprocess.run(
        [ckplan.find_program(), "--version"], check=True, capture_output=True, text=True
    ).stdout
    assert output.split() == ["ckplan", ckplan.__version__]
