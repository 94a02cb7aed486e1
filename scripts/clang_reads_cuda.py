#!/usr/bin/env python3
"""Lets clang read the files of lib/cuda that a build compiles for the host, without writing anything.

    scripts/clang_reads_cuda.py BUILD      BUILD has been configured with clang; a warning is an error

`.ci/run clang` calls this.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys


def reading_command(entry):
    """The command that compiles a file, but for its output; ccache would not understand it."""
    return re.sub(r" -o \S+", " -fsyntax-only", entry["command"].removeprefix("ccache "))


def is_read(entry):
    return subprocess.run(reading_command(entry), shell=True, cwd=entry["directory"]).returncode == 0


def main():
    database = pathlib.Path(sys.argv[1]) / "compile_commands.json"
    entries = [entry for entry in json.loads(database.read_text()) if "/lib/cuda/" in entry["file"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        are_read = list(pool.map(is_read, entries))
    print(f"clang has read {sum(are_read)} of {len(entries)} files of lib/cuda")
    if not entries or not all(are_read):
        sys.exit(1)


main()
