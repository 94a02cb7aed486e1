#!/usr/bin/env python3
"""Plans the models of ONNX's own node tests, and says how many are read, planned or rightly refused.

  python/benchmarks/onnx_node_tests.py PROGRAM [--list]

PROGRAM is a ckplan program. The package `onnx` makes the tests: models of one operator with the
values of their inputs and outputs. Each is read as it is and, if that is refused, with the contents
of its inputs of whole numbers, booleans and lists of floats (--set). It counts as

  planned           exit code 0, and each output that is a tensor of the graph has the bytes of the
                    expected array
  rightly refused   nothing can be trained: no output is a float tensor with elements, no float
                    comes in, the result is an input in another shape, or the operator draws its
                    result from text or sequences that come in
  refused           all others, which --list names
  wrong             planned with other bytes, or another exit code than 0, 2 and 3

Exit code 1 if any is wrong.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter

import numpy

LARGEST_SET = 512  # Numbers that are typed as the contents of an input.


def text_of(array):
    return json.dumps(array.tolist(), separators=(",", ":"))


def is_float(array):
    kind = getattr(array, "dtype", numpy.dtype("O"))
    return kind.kind == "f" or "float" in kind.name


def settings_of(model, inputs):
    """Returns --set for what decides shapes: all but the first float input."""
    flags = []
    has_float = False
    for info, value in zip(model.graph.input, inputs):
        if not isinstance(value, numpy.ndarray) or value.size == 0 or value.size > LARGEST_SET:
            continue
        is_batch = is_float(value) and (not has_float or value.ndim != 1)
        has_float = has_float or is_float(value)
        if is_batch or value.dtype.kind not in "biuf" or not numpy.isfinite(value).all():
            continue
        flags += ["--set", f"{info.name}={text_of(value)}"]
    return flags


def run(program, path, flags):
    command = [program, "graph", path, "--no-config", "--no-restore", "--autograd", "minimal"]
    return subprocess.run(command + flags, capture_output=True, text=True, check=False)


def wrong_bytes(graph, model, outputs):
    """Returns the outputs whose size differs from that of the expected arrays."""
    sizes = {tensor["name"]: tensor["bytes"] for tensor in graph["tensors"]}
    wrong = []
    for info, expected in zip(model.graph.output, outputs):
        if isinstance(expected, numpy.ndarray) and info.name in sizes and is_float(expected):
            if sizes[info.name] != expected.nbytes:
                wrong.append(f"{info.name}: {sizes[info.name]} bytes, expected {expected.nbytes}")
    return wrong


def can_be_trained(inputs, outputs):
    arrays = [value for value in inputs if isinstance(value, numpy.ndarray)]
    trained = [value for value in outputs if isinstance(value, numpy.ndarray)]
    given = {value.tobytes() for value in arrays}
    return (
        len(arrays) == len(inputs)
        and any(is_float(value) for value in arrays)
        and any(
            is_float(value) and value.size > 0 and value.tobytes() not in given for value in trained
        )
    )


def judge(program, path, test, takes_set):
    inputs, outputs = test.data_sets[0]
    done = run(program, path, [])
    if done.returncode not in (0, 70) and takes_set:
        flags = settings_of(test.model, inputs)
        if flags:
            again = run(program, path, flags)
            if again.returncode in (0, 70):
                done = again
    if done.returncode == 0:
        wrong = wrong_bytes(json.loads(done.stdout), test.model, outputs)
        return ("wrong", "; ".join(wrong)) if wrong else ("planned", "")
    reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    if done.returncode not in (2, 3):
        return "wrong", f"exit code {done.returncode}: {reason}"
    if not can_be_trained(inputs, outputs):
        return "rightly refused", reason
    return "refused", reason


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("--list", action="store_true", help="list the models that are refused or give wrong results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # The tests of the package need the time; they are made only when asked for.
    from onnx.backend.test.case.node import collect_testcases  # noqa: PLC0415

    help_text = subprocess.run(
        [options.program, "graph", "--help"], capture_output=True, text=True, check=False
    ).stdout
    takes_set = "--set " in help_text
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        for test in collect_testcases(None):
            if not test.data_sets:
                continue
            with open(path, "wb") as file:
                file.write(test.model.SerializeToString())
            verdict, why = judge(options.program, path, test, takes_set)
            counts[verdict] += 1
            if options.list and verdict in ("refused", "wrong"):
                print(f"{verdict}  {test.name}  {why}")
    total = sum(counts.values())
    for verdict in ("planned", "rightly refused", "refused", "wrong"):
        share = 100 * counts[verdict] / total
        print(f"{verdict:16} {counts[verdict]:5}  {share:5.1f}%")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
