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


def whole(report, run):
    """Returns the peak with parameters, their gradients and the batch, as PyTorch counts it."""
    constants = report["constants"]
    return report[run]["counted_peak"]["total_bytes"] + sum(
        constants[name] for name in ("parameter_bytes", "parameter_gradient_bytes", "input_bytes"))


def network(result):
    return [result["model"], " ".join(result["sizes"][1::2]), result["precision"]]


def label(case):
    return case.rsplit("/", 1)[1]


def in_stage(results, *stages):
    return [(case, result) for case, result in results.items() if result.get("stage") in stages]


def checks(results):
    rows = []
    for case, result in in_stage(results, "probe", "operators", "executor", "sanitizer"):
        rows.append([case, f"{result['seconds']:.1f}", verdict(result),
                     "; ".join(result.get("summary", []))])
        rows += [["", "", f"ended with {alone['exit_code']}", alone["name"]]
                 for alone in result.get("alone", []) if alone["exit_code"] != 0]
    return Table("Checks", ["case", "s>", "result", "details"], rows)


def run_cells(run):
    return [mib(run["predicted_peak_bytes"]), mib(run["arena_peak"]["total_bytes"]),
            mib(run["counted_peak"]["total_bytes"]), mib(run["driver_peak_bytes"]),
            milliseconds(run["seconds"])]


def plans(results):
    rows, kept = [], set()
    for case, result in in_stage(results, "small", "table"):
        if case.endswith("/profile"):
            continue
        if "report" not in result:
            rows.append([*network(result), label(case), *[""] * 7, verdict(result)])
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
                  "counted>", "driver>", "ms>", "overhead predicted>", "measured>", "result"], rows)


def change(report):
    return whole(report, "plan") / whole(report, "keep_all") - 1


def paper_figures(result):
    """Returns our figure and the paper's, as text."""
    details, report = result["details"], result["report"]
    if "paper_mib" in details:
        return mib(whole(report, "plan")), f"{details['paper_mib']:,}"
    if "paper_change" in details:
        return percent(change(report)), percent(details["paper_change"])
    return percent(report["measured_overhead"]), percent(details["paper_overhead"])


def paper_rows(results):
    rows = []
    for case, result in in_stage(results, "papers"):
        details = result.get("details", {})
        if "paper" not in details or "paper_ratio" in details:
            continue
        figures = paper_figures(result) if "report" in result else ("", "")
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
        ours, result = "", pair.get(1) or pair[2]
        if all(factor in pair and "report" in pair[factor] for factor in (1, 2)):
            once, twice = pair[1]["report"], pair[2]["report"]
            grown = {run: twice[run]["counted_peak"]["total_bytes"]
                     - once[run]["counted_peak"]["total_bytes"] for run in ("plan", "keep_all")}
            ours = f"{grown['plan'] / grown['keep_all']:.4f}" if grown["keep_all"] else ""
        rows.append([result["details"]["paper"], *network(result)[:2], "feng-acg / keeping all",
                     ours, f"{result['details']['paper_ratio']:.4f}", verdict(result)])
    return rows


def prediction_error(results):
    """Returns the mean relative difference between the driver's count and the prediction."""
    errors = []
    for _, result in results.items():
        for run in ("plan", "keep_all") if "report" in result else ():
            figures = result["report"][run]
            if figures["driver_peak_bytes"] and figures["predicted_peak_bytes"]:
                errors.append(abs(figures["driver_peak_bytes"] / figures["predicted_peak_bytes"]
                                  - 1))
    return sum(errors) / len(errors) if errors else None


def paper_table(results):
    error = prediction_error(results)
    note = "" if error is None else (
        f"The driver counts {error:.1%} more or less than predicted, on average over all plans; "
        f"Hong's Fig. 5 has {papers.HONG_PREDICTION_ERROR:.1%}.")
    return Table("Papers", ["figure", "network", "size", "schedule", "here>", "paper>", "result"],
                 paper_rows(results), note)


def against_eager(results, case, side):
    """Returns the promised and the measured peak, and whether gradients equal eager mode's."""
    if "ckplan_planned_peak_bytes" not in side:
        return ""
    eager = results.get(f"{case.rsplit('/', 1)[0]}/eager", {}).get("pytorch", {})
    same = "eager's bits" if eager.get("gradients_sha256") == side["gradients_sha256"] else (
        "OTHER BITS than eager's" if eager else "eager was not run")
    return (f"promised {mib(side['ckplan_planned_peak_bytes'])} of "
            f"{mib(side['ckplan_keep_all_peak_bytes'])}, measured "
            f"{mib(side.get('ckplan_measured_peak_bytes'))}; {same}")


def side_by_side(results):
    rows = []
    for case, result in in_stage(results, "pytorch"):
        if case.endswith("/profile"):
            continue
        start = network(result)
        if "report" in result:
            report = result["report"]
            rows.append([*start, f"{label(case)}, keeping all", mib(whole(report, "keep_all")),
                         milliseconds(report["keep_all"]["seconds"]), ""])
            rows.append([*start, f"{label(case)}, approx-dp", mib(whole(report, "plan")),
                         milliseconds(report["plan"]["seconds"]), verdict(result)])
        elif "pytorch" in result:
            side = result["pytorch"]
            rows.append([*start, f"PyTorch {side['torch']}, {label(case)}",
                         mib(side["peak_bytes"]), milliseconds(side["seconds"]),
                         against_eager(results, case, side)])
        else:
            rows.append([*start, label(case), "", "", verdict(result)])
    return Table("PyTorch side by side",
                 ["network", "size", "precision", "what", "peak, MiB>", "ms>", "result"], rows,
                 "Peaks include parameters, their gradients and the batch. A step is forward and "
                 "backward, without the loss and without the update of the weights.")


def moved(results):
    rows = []
    for case, result in in_stage(results, "offload"):
        if case.endswith("/profile"):
            continue
        start = [*network(result), label(case)]
        if "report" not in result:
            rows.append([*start, *[""] * 6, verdict(result)])
            continue
        report = result["report"]
        host = report["plan"].get("host", {})
        rows.append([*start, mib(report["plan"]["counted_peak"]["total_bytes"]),
                     mib(host.get("counted_peak_bytes")),
                     milliseconds(report["keep_all"]["seconds"]),
                     milliseconds(report["plan"]["seconds"]),
                     percent(report["predicted_overhead"]), percent(report["measured_overhead"]),
                     verdict(result)])
    return Table("Values on the host",
                 ["network", "size", "precision", "schedule", "counted, MiB>", "on the host>",
                  "keeping all, ms>", "ms>", "overhead predicted>", "measured>", "result"], rows,
                 "Schedules with copies may move values to the host; best alone recomputes.")


def all_tables(results):
    tables = [checks(results), plans(results), paper_table(results), side_by_side(results),
              moved(results)]
    return [table for table in tables if table.rows]
