"""Tests of ``scripts/size``, in a small repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


class Project:
    """A git repository with two rooms, a test and the script."""

    def __init__(self, root: Path):
        self.root = root
        for name in ("size", "help_option.py"):
            self.write(f"scripts/{name}", "")
            shutil.copy(SCRIPTS / name, root / "scripts" / name)
        self.write("lib/a/one.cc", "1\n" * 100)
        self.write("lib/a/one_test.cc", "1\n" * 30)
        self.write("lib/a/deep/two.h", "1\n" * 50)
        self.write("docs/page.md", "x" * 1999 + "\n")
        self.limits("lib/a  files 2  lines 153\ndocs   kB 3\n")
        self.git("init", "-q")
        self.commit()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def limits(self, text: str) -> None:
        self.write("scripts/size-limits.txt", "# Ceilings.\n" + text)

    def rows(self) -> list[str]:
        return (self.root / "scripts/size-limits.txt").read_text().splitlines()[1:]

    def git(self, *arguments: str) -> None:
        me = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
        subprocess.run(["git", "-C", self.root, *me, *arguments], check=True)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "all")

    def size(self, *arguments: str) -> tuple[int, str]:
        """Returns the exit code, and all output."""
        command = ["python3", "-B", self.root / "scripts/size", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def row(output: str, name: str) -> list[str]:
    """Returns the figures of the row, in which names may have several words."""
    (line,) = [line for line in output.splitlines() if line.startswith(name + " ")]
    return line.removeprefix(name).split()


def test_a_room_is_counted_without_its_tests(project):
    code, output = project.size()
    assert code == 0
    # files, lines, median, test files, test lines, kB
    assert row(output, "lib/a") == ["2", "150", "75", "1", "30", "0"]
    assert row(output, "docs") == ["1", "1", "1", "0", "0", "2"]
    assert row(output, "C++ lines without tests") == ["150"]


def test_the_longest_path_is_the_room_of_a_file(project):
    project.limits("lib/a\nlib/a/deep\n")
    assert row(project.size()[1], "lib/a")[:2] == ["1", "100"]
    assert row(project.size()[1], "lib/a/deep")[:2] == ["1", "50"]


def test_what_a_change_adds_is_shown_before_it_is_committed(project):
    project.write("lib/a/three.cc", "1\n" * 7)
    (project.root / "lib/a/deep/two.h").unlink()
    output = project.size("--against", "HEAD")[1]
    assert row(output, "lib/a")[:2] == ["+0", "-43"]
    assert row(output, "C++ lines without tests") == ["150", "->", "107", "-43"]
    assert "docs " not in output
    assert row(project.size("--at", "HEAD")[1], "lib/a")[:2] == ["2", "150"]


def test_a_room_above_its_ceiling_fails_with_the_figure_and_what_to_do(project):
    assert project.size("--check") == (0, "")
    project.write("lib/a/one_test.cc", "1\n" * 1000)
    assert project.size("--check") == (0, "")  # Tests have no ceiling.
    project.write("lib/a/one.cc", "1\n" * 104)
    code, output = project.size("--check")
    assert code == 1
    assert "size: lib/a has 154 lines, above its ceiling of 153\n" in output
    assert 'run scripts/size --raise ROOM "WHAT THE USER GETS"' in output


def test_a_ceiling_is_raised_with_what_the_user_gets(project):
    project.write("lib/a/one.cc", "1\n" * 150)
    assert project.size("--raise", "lib/a", " ")[0] == 1
    assert project.size("--raise", "lib/b", "plans")[0] == 1
    assert project.size("--raise", "lib/a", "plans for loops") == (0, "")
    assert project.rows() == ["# lib/a: plans for loops", "lib/a  files 3  lines 204", "docs   kB 3"]
    assert project.size("--check") == (0, "")
    assert project.size("--raise", "docs", "nothing new")[0] == 0
    assert project.rows()[-1] == "docs   kB 3"  # High enough, so nothing is noted.


def test_what_is_cut_stays_cut(project):
    project.write("lib/a/one.cc", "1\n" * 50)
    assert project.size("--tighten") == (0, "")
    assert project.rows() == ["lib/a  files 2  lines 102", "docs   kB 3"]


@pytest.mark.parametrize("limits", ["lib/a lines", "lib/a lines many", "lib/a words 3"])
def test_a_malformed_row_is_named(project, limits):
    project.limits(limits)
    code, output = project.size()
    assert code == 1
    assert output.startswith(f"size: size-limits.txt:2: '{limits}' isn't ROOM FIGURE CEILING...")


def test_a_room_without_files_is_named(project):
    project.limits("lib/gone  files 3\n")
    code, output = project.size("--check")
    assert code == 1
    assert "no file begins with 'lib/gone/'" in output
