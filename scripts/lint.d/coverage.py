#!/usr/bin/env python3
"""Prints which share of the lines of lib/ tests have run, by folder; fails below a goal.

    scripts/lint.d/coverage.py BUILD GOAL    GOAL is in per cent

BUILD has been built with the preset `clang`, and its tests have been run: `.ci/run coverage` does both and calls this. Lines of lib/ that the build leaves out are not counted.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile


def programs(build):
    """Returns the tests and the programs, which together link all libraries."""
    found = [path for path in build.rglob("ckplan_*_test") if path.is_file()]
    found += [build / "cli" / name / name for name in ("ckplan", "ckbench", "ckexec")]
    return [path for path in found if path.is_file()]


def summaries(build):
    """Returns llvm-cov's figures, one entry for each file."""
    with tempfile.NamedTemporaryFile(suffix=".profdata") as merged:
        profiles = sorted(str(path) for path in (build / "profile").glob("*.profraw"))
        subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", merged.name, *profiles], check=True)
        first, *others = map(str, programs(build))
        objects = [argument for path in others for argument in ("-object", path)]
        command = ["llvm-cov-14", "export", "-summary-only", "-instr-profile", merged.name, first, *objects]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["data"][0]["files"]


def folder_of(path, library):
    """Returns lib/base and so on; None for tests, test-only code, files outside lib/, and lib/executor/cuda, whose tests are left out."""
    if not path.is_relative_to(library) or path.name.endswith("_test.cc"):
        return None
    room, *folders = path.relative_to(library).parts[:-1] or ("",)
    if room == "testing" or folders[:1] in (["testing"], ["cuda"]):
        return None
    return "/".join(part for part in ("lib", room, *folders[:1]) if part)


def parse():
    options = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", metavar="BUILD", type=pathlib.Path)
    options.add_argument("goal", metavar="GOAL", type=float)
    return options.parse_args()


def main():
    given = parse()
    build, goal = given.build.resolve(), given.goal
    library = pathlib.Path(__file__).resolve().parents[2] / "lib"
    lines = collections.defaultdict(lambda: [0, 0])
    for file in summaries(build):
        folder = folder_of(pathlib.Path(file["filename"]).resolve(), library)  # ccache makes paths relative to the build
        for name in {folder, "lib"} if folder else ():
            lines[name][0] += file["summary"]["lines"]["covered"]
            lines[name][1] += file["summary"]["lines"]["count"]
    for name, (covered, count) in sorted(lines.items(), key=lambda row: (row[0] == "lib", row[0])):
        print(f"{name:16} {covered:6} of {count:6} lines {100 * covered / count:6.1f} %")
    covered, count = lines["lib"]
    if not count:
        sys.exit("coverage: no file of lib/ has been counted")
    if 100 * covered < goal * count:
        sys.exit(f"coverage: below {goal:g} %")


main()
