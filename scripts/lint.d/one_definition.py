#!/usr/bin/env python3
"""Finds types of one name in one namespace that two headers or sources define.

    scripts/lint.d/one_definition.py    exits with 1 and names the files if there are any

Programs link folders that do not include each other. If two of them define a type under one name, the linker
keeps one version of their functions for both, and no compiler notices it. Types in anonymous namespaces do
not count. The code is read line by line, as clang-format writes it.
"""

import argparse
import collections
import pathlib
import re
import sys

OPENED = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{")
DEFINED = re.compile(r"(?:class|struct|union|enum class|enum) (?:alignas\(.*?\) )?(\w+)(?!\w|::)[^;]*(?:\{.*)?$")


def types_of(path):
    """Yields the full names of the types that the file defines outside of functions and other types."""
    namespaces = []
    for line in path.read_text().splitlines():
        if opened := OPENED.match(line):
            namespaces.append(opened[1] or "(anonymous)")
        elif line.startswith("}  // namespace"):
            namespaces.pop()
        elif defined := DEFINED.match(line):
            if "(anonymous)" not in namespaces:
                yield "::".join([*namespaces, defined[1]])


def parse():
    options = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    return options.parse_args()


def main():
    parse()
    root = pathlib.Path(__file__).resolve().parents[2]
    files_of = collections.defaultdict(set)
    for folder in ("lib", "cli"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu"):
                for name in types_of(path):
                    files_of[name].add(path.relative_to(root))
    repeated = {name: files for name, files in files_of.items() if len(files) > 1}
    for name, files in sorted(repeated.items()):
        print(f"{name} is defined in {' and '.join(map(str, sorted(files)))}", file=sys.stderr)
    sys.exit(1 if repeated else 0)


if __name__ == "__main__":
    main()
