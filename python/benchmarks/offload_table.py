#!/usr/bin/env python3
"""Tabulates the time that plans with offloading add, and the proven bounds on it.

    python/benchmarks/offload_table.py CKPLAN [--effort quick|normal|thorough] [--journal FILE] [--only TEXT]

Makes the joint graph of each network in testdata/models for a device, and plans it by `best` over a
link for several budgets. Prints a Markdown table: added time and bound in per cent of a step, and
CPU seconds. With a journal, an interrupted run resumes.
"""
import argparse
import functools
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile

from journal import Journal, add_argument

MODELS = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "models"
NETWORKS = {"resnet50": ("resnet50", 64), "densenet121": ("densenet121", 64), "bert": ("bert_base_512", 32),
            "gpt2": ("gpt2_small", 8), "vit": ("vit_b_16", 64), "mobilenet": ("mobilenet_v2", 64),
            "swin": ("timm_swin_base", 32), "unet": ("unet_572", 8)}
DEVICES = {"a100": "flops:a100-40g", "h100": "flops:h100-80g"}
LINKS = [("a100", "pcie4:25/25"), ("a100", "pcie4:64/64"), ("h100", "pcie5:50/50"), ("h100", "c2c:400/400")]
BUDGETS = [70, 50, 35, 25]


def make_graph(program, network, device, path):
    model, batch = NETWORKS[network]
    subprocess.run([program, "graph", MODELS / f"{model}.onnx", "-D", f"N={batch}", "--joint", "--cost", DEVICES[device],
                    "--no-restore", "--autograd", "minimal",
                    "-q", "-o", path], check=True)


def plan_row(program, graph, effort, link, budget, folder):
    """Returns the row of one plan; one without `added` if nothing fits the budget."""
    out = folder / "plan.json"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, "plan", graph, "--algo", "best", "--effort", effort, "--budget", f"{budget}%",
                           "--offload", link, "-q", "-o", out], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    operations = json.loads(graph.read_text())["ops"]
    row = {"operations": len(operations),
           "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)}
    if done.returncode == 4:
        return row
    if done.returncode:
        raise SystemExit(f"offload_table: {graph.name} over {link} at {budget} %: {done.stderr.strip()}")
    result = json.loads(out.read_text())["result"]
    once = sum(operation["cost"] for operation in operations)
    row["added"] = 100 * result["overhead_cost"] / once
    row["bound"] = 100 * (result["lower_bound_cost"] or 0) / once
    return row


def text_of(row):
    if "added" not in row:
        return "no plan"
    return f"{row['added']:.2f} / {row['bound']:.2f} / {row['cpu_seconds']:.1f}"


def make_rows(args, journal):
    for device, link in LINKS:
        for network in NETWORKS:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                graph = folder / f"{network}.json"
                for budget in BUDGETS:
                    key = f"{network} {device} {link} {budget} {args.effort}"
                    if args.only not in key or journal.has(key):
                        continue
                    if not graph.exists():
                        make_graph(args.program, network, device, graph)
                    journal.row(key, functools.partial(plan_row, args.program, graph, args.effort, link, budget, folder))


def print_table(effort, rows):
    print("| network | device, link | " + " | ".join(f"{budget} %" for budget in BUDGETS) + " |")
    print("| --- | --- |" + " ---: |" * len(BUDGETS))
    for network in NETWORKS:
        for device, link in LINKS:
            keys = [f"{network} {device} {link} {budget} {effort}" for budget in BUDGETS]
            if any(key in rows for key in keys):
                cells = [text_of(rows[key]) if key in rows else "" for key in keys]
                print(f"| `{network}` | {device}, `{link}` | " + " | ".join(cells) + " |")
    plans = [row for key, row in rows.items() if key.endswith(f" {effort}") and "added" in row]
    gaps = [row["added"] - row["bound"] for row in plans]
    per_operation = [500 * row["cpu_seconds"] / row["operations"] for row in plans]
    print(f"\n{len(plans)} plans: the median distance from the bound is {statistics.median(gaps):.2f} points of a step, "
          f"{sum(gap <= 0.5 for gap in gaps)} are within .5; {statistics.median(per_operation):.1f} CPU seconds for 500 "
          f"operations in the median, {max(per_operation):.1f} at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="CKPLAN")
    parser.add_argument("--effort", choices=["quick", "normal", "thorough"], default="normal")
    add_argument(parser)
    parser.add_argument("--only", default="", help="run only rows whose network, device, link and budget contain this text")
    args = parser.parse_args()
    journal = Journal(args.journal, [])
    make_rows(args, journal)
    rows = journal.rows("")
    if not rows:
        raise SystemExit(f"offload_table: no row contains the text {args.only!r}")
    print_table(args.effort, rows)


if __name__ == "__main__":
    main()
