#!/usr/bin/env python3
"""Finds calls with an argument that another argument of the same call changes.

    scripts/lint.d/argument_order.py BUILD PATH...    PATH: a file, or a folder with all that BUILD compiles of it

`Take(Fill(&memory), memory)` means one thing where arguments are evaluated from left to right, as by clang, and
another from right to left, as by GCC; neither compiler warns. scripts/lint.d/argument_order.query says in the terms of
clang-query what is looked for. scripts/lint.d/argument_order_sample.cc has calls that must be found and others that must
not; they are tried first. BUILD has been configured for clang, but need not have been built. `.ci/run arguments`
and `.ci/run clang` call this.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

from read_alone import is_within, parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERY = ROOT / "scripts/lint.d/argument_order.query"
SAMPLE = ROOT / "scripts/lint.d/argument_order_sample.cc"


def statements():
    """Returns the query with each statement on its own line, as clang-query expects."""
    text = re.sub(r"^#.*\n", "", QUERY.read_text(), flags=re.MULTILINE)
    return ["set output diag", "set bind-root false"] + re.sub(r"\n +", " ", text).split("\n")


def ask(arguments):
    """Runs clang-query; returns what it printed, or ends the program with its errors."""
    commands = [part for line in statements() if line for part in ("-c", line)]
    run = subprocess.run(["clang-query-14", *commands, *arguments], capture_output=True, text=True)
    if run.returncode or "error:" in run.stderr:
        sys.exit(f"clang-query-14 {' '.join(arguments)}: {run.stderr or run.stdout}")
    return run.stdout


def findings(output):
    """Returns (file, line, column) of each call; an argument that matches itself does not count."""
    found = set()
    for match in re.split(r"^Match #\d+:$", output, flags=re.MULTILINE):
        places = {name: (file, int(line), int(column)) for file, line, column, name in
                  re.findall(r'^(\S+?):(\d+):(\d+): note: "(\w+)" binds here', match, re.MULTILINE)}
        if places and places["changing"] != places["reading"]:
            found.add(places["call"])
    return found


def try_sample():
    lines = SAMPLE.read_text().split("\n")
    wanted = {number for number, line in enumerate(lines, 1) if line.endswith("// found")}
    found = {line for _, line, _ in findings(ask([str(SAMPLE), "--", "-std=c++20", "-w"]))}
    if found != wanted:
        sys.exit(f"{SAMPLE}: not found: {sorted(wanted - found)}, found wrongly: {sorted(found - wanted)}")


def look_at(build, file):
    return findings(ask(["-p", build, "--extra-arg=-w", file]))


def main():
    given = parse(__doc__)
    build, paths = given.build, [ROOT / path for path in given.paths]
    try_sample()
    database = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    files = sorted({entry["file"] for entry in database if is_within(pathlib.Path(entry["file"]), paths)})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = set().union(*pool.map(lambda file: look_at(build, file), files))
    for file, line, column in sorted(found):
        name = os.path.relpath(file, ROOT)
        print(f"{name}:{line}:{column}: one argument changes another; evaluate it before this call")
    print(f"{len(found)} such calls in {len(files)} files")
    sys.exit(1 if found else 0)


main()
