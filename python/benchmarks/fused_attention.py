#!/usr/bin/env python3
"""Counts the attentions of models that `ckplan --fuse attention` reads as one operator each, and
what that does to peaks.

  python/benchmarks/fused_attention.py PROGRAM MODEL... [-D NAME=N]...

PROGRAM is a ckplan program. Prints a table in Markdown with a row for each model that has a Softmax
or an Attention: how many of them there are, how many attentions are fused, the peak of keeping
everything, and the time that a plan by best with 60 % of the peak of keeping the unfused model adds
to a step, each without and with the flag. Open dimensions are bound by one rule: N=8, all others
512.
"""

import argparse
import json
import os
import re
import subprocess

OPEN_DIMENSION = re.compile(r" -D ([^=\s]+)=\.\.\.")


def call(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def dims_of(program, model, given):
    """Returns the flags that bind the open dimensions of a model."""
    done = call(program, "inspect", model, "-f", "json")
    names = OPEN_DIMENSION.findall(done.stderr)
    sizes = {name: "8" if name == "N" else "512" for name in names}
    sizes.update(given)
    return [f"-D{name}={size}" for name, size in sizes.items() if name in names]


def inspect(program, model, flags):
    done = call(program, "inspect", model, "-f", "json", *flags)
    if done.returncode != 0:
        raise SystemExit(done.stderr.splitlines()[0])
    return json.loads(done.stdout)


def counts_of(inspection):
    return {row["op"]: row["count"] for row in inspection["operators"]}


def gibibytes(size):
    return f"{size / 2**30:.2f}"


def added_time(program, model, flags, budget):
    """Returns the time that a plan within the budget adds, in percent, or why there is no plan."""
    done = call(program, "plan", model, *flags, "--budget", str(budget), "-q", "-o", "-")
    if done.returncode != 0:
        return "none fits"
    result = json.loads(done.stdout)["result"]
    step = result["forward_cost"] + result["backward_cost"]
    return f"{100 * result['overhead_cost'] / step:.1f} %"


def row_of(program, model, given):
    """Returns the cells of a model; none if it has no attention."""
    flags = dims_of(program, model, given)
    apart = inspect(program, model, flags)
    counts = counts_of(apart)
    candidates = counts.get("Softmax", 0) + counts.get("Attention", 0)
    if candidates == 0:
        return None
    fuse = [*flags, "--fuse", "attention"]
    fused = inspect(program, model, fuse)
    peaks = apart["keep_all_peak_bytes"], fused["keep_all_peak_bytes"]
    cells = [os.path.basename(model), str(candidates),
             str(counts_of(fused).get("FusedAttention", 0)), gibibytes(peaks[0]),
             gibibytes(peaks[1]), "-", "-"]
    if peaks[1] != peaks[0]:
        budget = peaks[0] * 60 // 100
        cells[5:] = [added_time(program, model, form, budget) for form in (flags, fuse)]
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("-D", dest="dims", action="append", default=[], metavar="NAME=N")
    options = parser.parse_args()
    given = dict(text.split("=", 1) for text in options.dims)
    print("| model | Softmax, Attention | fused | peak, GiB | fused, GiB | best at 60 % | fused |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    without = 0
    for model in options.models:
        cells = row_of(options.program, model, given)
        if cells is None:
            without += 1
        else:
            print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\n{without} other models have neither.")


if __name__ == "__main__":
    main()
