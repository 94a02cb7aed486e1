#!/usr/bin/env python3
"""Adds up which CUDA kernels the interpreter of PTX has run.

    CKPLAN_PTX_KERNELS=kernels.txt build/release/lib/executor/cuda/testing/ptx/ckplan_cuda_ptx_test
    scripts/lint.d/kernel_coverage.py kernels.txt [...]

Programs of the interpreter append to the file named by CKPLAN_PTX_KERNELS which kernels they ran. This prints how many
ran in any of them, and which did not. Each of these must be known to be unreachable: the file
lib/executor/cuda/testing/ptx/unreachable_kernels.txt says why. Exits with 1 if another kernel was not run, or if one of them was.
"""

import argparse
import fnmatch
import pathlib
import sys

UNREACHABLE = pathlib.Path(__file__).resolve().parents[2] / "lib/executor/cuda/testing/ptx/unreachable_kernels.txt"


def read_unreachable(text):
    """Returns the reason for each pattern. A reason is a comment, followed by its patterns."""
    reasons = {}
    reason = ""
    begins = True
    for line in text.splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ") if begins else f"{reason} {line.lstrip('# ')}"
            begins = False
        else:
            begins = True
            if line:
                reasons[line] = reason
    return reasons


def read_runs(paths):
    """Returns whether each kernel ran in any program."""
    has_run = {}
    for path in paths:
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            state, name = line.split(": ", 1)
            has_run[name] = has_run.get(name, False) or state == "run"
    return has_run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="file that programs of the interpreter have written")
    has_run = read_runs(parser.parse_args().files)
    reasons = read_unreachable(UNREACHABLE.read_text(encoding="utf-8"))

    def reason_of(name):
        return next((reason for pattern, reason in reasons.items() if fnmatch.fnmatchcase(name, pattern)), None)

    by_reason = {}
    surprising = []
    for name, ran in sorted(has_run.items()):
        reason = reason_of(name)
        if ran == (reason is not None):
            surprising.append(f"{'run, although unreachable' if ran else 'not run'}: {name}")
        elif not ran:
            by_reason.setdefault(reason, []).append(name)
    print(f"{sum(has_run.values())} of {len(has_run)} kernels run")
    for reason, names in by_reason.items():
        print(f"{len(names)} unreachable: {reason}")
    print("\n".join(surprising), end="\n" if surprising else "")
    return 1 if surprising else 0


if __name__ == "__main__":
    sys.exit(main())
