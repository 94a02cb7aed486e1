"""Tables of a campaign's results, which both pages show: a title, a header and rows of text."""

from typing import NamedTuple

from . import papers

MIB = 2**20
PLANNED = ("small", "table", "offload")  # Stages of plans that charts show beside keeping all.


class Table(NamedTuple):
    title: str
    header: list  # A column whose name ends with `>` holds numbers.
    rows: list
    note: str = ""


def mib(count):
    return "" if count is None else f"{count / MIB:,.1f}"


def milliseconds(value):
    return "" if value is None else f"{value * 1000:,.1f}"


def percent(value):
    return "" if value is None else f"{value:+.1%}"


def verdict(result):
    """Returns the outcome of a case in a few words, with the first reason."""
    if result["status"] == "passed":
        return "proven" if "report" in result else "passed"
    reasons = result.get("reasons") or [""]
    return f"{result['status']}: {reasons[0]}"


def peak_by(source, run):
    """Returns the peak as counted from the sizes of buffers, which equals the prediction by
    construction, or as the driver counted it. None if the driver did not count."""
    return run["driver_peak_bytes"] if source == "driver" else run["counted_peak"]["total_bytes"]


def whole(report, run, source="counted"):
    """Returns the peak with what PyTorch's allocator would also count: parameters, their gradients
    and the batch."""
    constants = report["constants"]
    peak = peak_by(source, report[run])
    return None if peak is None else peak + sum(
        constants[name] for name in ("parameter_bytes", "parameter_gradient_bytes", "input_bytes"))


WORDS = {"none": "unfused", "attention": "fused"}  # Of --fuse.


def network(result):
    sizes = " ".join(WORDS.get(value, value) for value in result["sizes"][1::2])
    return [result["model"], sizes, result["precision"]]


def label(case):
    return case.rsplit("/", 1)[1]


def in_stage(results, *stages):
    return [(case, result) for case, result in results.items() if result.get("stage") in stages]


def checks(results):
    rows = []
    for case, result in in_stage(results, "probe", "operators", "executor", "sanitizer"):
        rows.append([case, f"{result['seconds']:.1f}", verdict(result),
                     "; ".join(result.get("summary", []))])
        rows += [["", "", f"ended with {test['exit_code']}", test["name"]]
                 for test in result.get("alone", []) if test["exit_code"] != 0]
    return Table("Checks", ["case", "s>", "result", "details"], rows)


def run_cells(run):
    return [mib(run["predicted_peak_bytes"]), mib(run["arena_peak"]["total_bytes"]),
            mib(run["counted_peak"]["total_bytes"]), mib(run["driver_peak_bytes"]),
            milliseconds(run.get("predicted_seconds")), milliseconds(run.get("operator_seconds")),
            milliseconds(run["seconds"])]


MEMORY_NOTE = ("Arena and counted add up the sizes of buffers, so they equal the prediction if the "
               "plan is followed; the driver's count is independent of it.")
TIMES = {"operators": "the sum of the operators' medians", "steps": "an undisturbed step",
         "graphs": "an undisturbed step as a CUDA graph"}


def time_note(results):
    """Says what the times of these results are, and how far the predicted ones are off."""
    reports = [result["report"] for result in results if "report" in result]
    timed = sorted({report["timing"] for report in reports if report.get("timing")})
    if not timed:
        return ""
    text = (f"ms is {' or '.join(TIMES[name] for name in timed)}; predicted ms adds up what ckexec "
            "profile measured operator by operator, and by operator is the same of this run. "
            "Operators run fused in all three.")
    error = mean_error((run["seconds"], run.get("predicted_seconds"))
                       for report in reports for run in (report["keep_all"], report["plan"]))
    return text if error is None else (
        f"{text} Steps take {error:.1%} more or less than predicted, on average.")


def plans(results):
    rows, kept = [], set()
    for case, result in in_stage(results, "small", "table"):
        if case.endswith("/profile"):
            continue
        if "report" not in result:
            rows.append([*network(result), label(case), *[""] * 9, verdict(result)])
            continue
        report = result["report"]
        if tuple(network(result)) not in kept:
            kept.add(tuple(network(result)))
            rows.append([*network(result), "keeping all", *run_cells(report["keep_all"]), "", "",
                         ""])
        rows.append([*network(result), label(case), *run_cells(report["plan"]),
                     percent(report["predicted_overhead"]), percent(report["measured_overhead"]),
                     verdict(result)])
    return Table("Networks, keeping all and by plans",
                 ["network", "size", "precision", "schedule", "predicted, MiB>", "arena>",
                  "counted>", "driver>", "predicted, ms>", "by operator>", "ms>",
                  "overhead predicted>", "measured>", "result"], rows,
                 f"{MEMORY_NOTE} {time_note(results.values())}".rstrip())


def change(report, source):
    plan, keep_all = (whole(report, run, source) for run in ("plan", "keep_all"))
    return None if plan is None or keep_all is None else plan / keep_all - 1


def paper_figures(result):
    """Returns our figure as counted, as the driver counted it, and the paper's, as text."""
    details, report = result["details"], result["report"]
    if "paper_mib" in details:
        return (*(mib(whole(report, "plan", source)) for source in ("counted", "driver")),
                f"{details['paper_mib']:,}")
    if "paper_change" in details:
        return (*(percent(change(report, source)) for source in ("counted", "driver")),
                percent(details["paper_change"]))
    return percent(report["measured_overhead"]), "", percent(details["paper_overhead"])


def paper_rows(results):
    rows = []
    for case, result in in_stage(results, "papers"):
        details = result.get("details", {})
        if "paper" not in details or "paper_ratio" in details:
            continue
        figures = paper_figures(result) if "report" in result else ("", "", "")
        rows.append([details["paper"], *network(result)[:2], label(case), *figures,
                     verdict(result)])
    return rows + feng_rows(results)


def feng_rows(results):
    """The paper takes memory as the difference between two batches, so two cases give one row."""
    pairs = {}
    for _, result in in_stage(results, "papers"):
        if "paper_ratio" in result.get("details", {}):
            pairs.setdefault(result["model"], {})[result["details"]["factor"]] = result
    rows = []
    for model, pair in pairs.items():
        result = pair.get(1) or pair[2]
        has_both = all(factor in pair and "report" in pair[factor] for factor in (1, 2))
        ours = [growth_ratio(pair[1]["report"], pair[2]["report"], source) if has_both else ""
                for source in ("counted", "driver")]
        rows.append([result["details"]["paper"], *network(result)[:2], "feng-acg / keeping all",
                     *ours, f"{result['details']['paper_ratio']:.4f}", verdict(result)])
    return rows


def growth_ratio(once, twice, source):
    """Returns how much the plan's peak grows from one batch to the other, over that of keeping all."""
    peaks = [peak_by(source, report[run]) for run in ("plan", "keep_all") for report in (once, twice)]
    if None in peaks or peaks[3] == peaks[2]:
        return ""
    return f"{(peaks[1] - peaks[0]) / (peaks[3] - peaks[2]):.4f}"


def mean_error(pairs):
    """Returns by how much the first of each pair is off the second, on average; None without any."""
    errors = [abs(measured / predicted - 1) for measured, predicted in pairs
              if measured and predicted]
    return sum(errors) / len(errors) if errors else None


def prediction_error(results):
    """Returns by how much the driver's own count is off the prediction, on average."""
    return mean_error((figures["driver_peak_bytes"], figures["predicted_peak_bytes"])
                      for result in results.values() if "report" in result
                      for figures in (result["report"]["plan"], result["report"]["keep_all"]))


def paper_table(results):
    error = prediction_error(results)
    note = "" if error is None else (
        f"The driver counts {error:.1%} more or less than predicted, on average over all plans; "
        f"Hong's Fig. 5 has {papers.HONG_PREDICTION_ERROR:.1%}.")
    return Table("Papers", ["figure", "network", "size", "schedule", "here>", "by the driver>",
                             "paper>", "result"],
                 paper_rows(results), note)


def bits_against_eager(eager, side):
    if not eager:
        return "eager was not run"
    if eager.get("gradients_sha256") == side["gradients_sha256"]:
        return "eager's bits"
    # Some of PyTorch's kernels on a GPU add up in an order that changes from step to step.
    return ("OTHER BITS than eager's" if eager.get("gradients_repeat", True)
            else "eager's bits change from step to step")


def against_eager(results, case, side):
    """Returns what ckplan.torch promised and needed, in memory and beside eager's time, and whether
    its gradients are eager's."""
    if "ckplan_planned_peak_bytes" not in side:
        return ""
    eager = results.get(f"{case.rsplit('/', 1)[0]}/eager", {}).get("pytorch", {})
    parts = [f"promised {mib(side['ckplan_planned_peak_bytes'])} of "
             f"{mib(side['ckplan_keep_all_peak_bytes'])}, measured "
             f"{mib(side.get('ckplan_measured_peak_bytes'))}", bits_against_eager(eager, side)]
    if eager.get("seconds"):
        parts.append(f"{side['seconds'] / eager['seconds'] - 1:+.1%} of eager's time, "
                     f"{side['ckplan_added_time_percent'] / 100:+.1%} by a roofline")
    return "; ".join(parts)


def side_by_side(results):
    rows = []
    for case, result in in_stage(results, "pytorch"):
        if case.endswith("/profile"):
            continue
        start = network(result)
        if "report" in result:
            report = result["report"]
            for run, what, outcome in (("keep_all", "keeping all", ""),
                                       ("plan", "approx-dp", verdict(result))):
                rows.append([*start, f"{label(case)}, {what}", mib(whole(report, run)),
                             mib(whole(report, run, "driver")), "", "",
                             milliseconds(report[run].get("predicted_seconds")),
                             milliseconds(report[run]["seconds"]), outcome])
        elif "pytorch" in result:
            side = result["pytorch"]
            rows.append([*start, f"PyTorch {side['torch']}, {label(case)}",
                         "", "", mib(side["peak_bytes"]), mib(side.get("reserved_bytes")), "",
                         milliseconds(side["seconds"]),
                         against_eager(results, case, side)])
        else:
            rows.append([*start, label(case), *[""] * 6, verdict(result)])
    return Table("PyTorch side by side",
                 ["network", "size", "precision", "what", "counted, MiB>", "driver>",
                  "PyTorch, allocated>", "reserved>", "predicted, ms>", "ms>", "result"], rows,
                 "Peaks include parameters, their gradients and the batch. A step is forward and "
                 "backward, without the loss and without the update of the weights.")


def moved(results):
    rows = []
    for case, result in in_stage(results, "offload"):
        if case.endswith("/profile"):
            continue
        start = [*network(result), label(case)]
        if "report" not in result:
            rows.append([*start, *[""] * 7, verdict(result)])
            continue
        report = result["report"]
        host = report["plan"].get("host", {})
        rows.append([*start, mib(report["plan"]["counted_peak"]["total_bytes"]),
                     mib(report["plan"]["driver_peak_bytes"]),
                     mib(host.get("counted_peak_bytes")),
                     milliseconds(report["keep_all"]["seconds"]),
                     milliseconds(report["plan"]["seconds"]),
                     percent(report["predicted_overhead"]), percent(report["measured_overhead"]),
                     verdict(result)])
    return Table("Values on the host",
                 ["network", "size", "precision", "schedule", "counted, MiB>", "driver>", "on the host>",
                  "keeping all, ms>", "ms>", "overhead predicted>", "measured>", "result"], rows,
                 "Schedules with copies may move values to the host; those of best alone only recompute.")


def all_tables(results):
    tables = [checks(results), plans(results), paper_table(results), side_by_side(results),
              moved(results)]
    return [table for table in tables if table.rows]
