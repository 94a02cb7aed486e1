#!/usr/bin/env python3
"""Prints the lines that a diff adds, in the form of clang-tidy's --line-filter.

    git diff --unified=0 ... | scripts/lint.d/changed_lines.py LIMIT      at most LIMIT files, those with the most lines

`.ci/run tidy` calls this.
"""

import argparse
import json
import re
import sys


def ranges_by_file(diff):
    """Returns, for each file, the first and the last line of each run of added lines."""
    ranges = {}
    for line in diff:
        if line.startswith("+++ b/"):
            of_file = ranges.setdefault(line[6:].strip(), [])
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            start, count = int(found[1]), int(found[2] or 1)
            if count:
                of_file.append([start, start + count - 1])
    return {name: of_file for name, of_file in ranges.items() if of_file}


def parse():
    options = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("limit", metavar="LIMIT", type=int)
    return options.parse_args()


def main():
    limit = parse().limit
    changed = ranges_by_file(sys.stdin)
    most_changed = sorted(changed, key=lambda name: (-sum(end - start + 1 for start, end in changed[name]), name))
    kept = most_changed[:limit]
    print(f"{len(kept)} of {len(changed)} changed files", file=sys.stderr)
    print(json.dumps([{"name": name, "lines": changed[name]} for name in kept]))


main()
