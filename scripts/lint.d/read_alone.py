#!/usr/bin/env python3
"""Lets the compiler of a build folder read files each by itself, without writing anything.

    scripts/lint.d/read_alone.py BUILD PATH...      PATH: a file, or a folder with all that BUILD compiles of it

BUILD has been configured, but need not have been built; a warning is an error. Files that BUILD does not
compile are left out. A build that compiles several files as one does not notice an #include that is missing
in one of them and stands in another. `.ci/run includes` and `.ci/run clang` call this.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys


def reading_command(entry):
    """Returns the command that compiles a file, without its output option and without ccache."""
    return re.sub(r" -o \S+", " -fsyntax-only", entry["command"].removeprefix("ccache "))


def is_read(entry):
    return subprocess.run(reading_command(entry), shell=True, cwd=entry["directory"]).returncode == 0


def is_within(file, paths):
    return any(file == path or path in file.parents for path in paths)


def parse(description):
    options = argparse.ArgumentParser(description=description, usage=argparse.SUPPRESS,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", metavar="BUILD")
    options.add_argument("paths", metavar="PATH", nargs="*")
    return options.parse_args()


def main():
    given = parse(__doc__)
    root = pathlib.Path(__file__).resolve().parents[2]
    paths = [root / path for path in given.paths]
    database = json.loads((pathlib.Path(given.build) / "compile_commands.json").read_text())
    entries = [entry for entry in database if is_within(pathlib.Path(entry["file"]), paths)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        are_read = list(pool.map(is_read, entries))
    print(f"read {sum(are_read)} of {len(entries)} files by themselves")
    sys.exit(0 if all(are_read) else 1)


if __name__ == "__main__":
    main()
