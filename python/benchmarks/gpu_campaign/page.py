"""Makes the pages of a campaign from its journal: tables in Markdown, and HTML with charts."""

import html
import os
import sys

from . import tables
from .journal import FILE, read_records, results_of

NAME = "gpu-validation"
STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-size:13px}
td,th{border-bottom:1px solid #ddd;padding:.2rem .6rem;text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
svg{font:12px system-ui,sans-serif;display:block;margin:.5rem 0 1.5rem}
.warn{background:#fff3cd;padding:.5rem 1rem}
"""
COLOURS = ["#9aa5b1", "#2563eb", "#16a34a", "#d97706"]
WIDTH, NAMES, BAR = 1000, 330, 13


def machine_of(results):
    probe = results.get("probe", {})
    driver = ", ".join(f"{key} {value}" for key, value in probe.get("driver", {}).items())
    return " · ".join(part for part in (probe.get("backend", ""), driver) if part) or "not known"


def is_rehearsed(results):
    return bool(results.get("probe", {}).get("rehearsed"))


WARNING = ("A rehearsal over an emulated GPU, with a small network in place of each: these figures "
           "mean nothing.")


# ---- Markdown ----------------------------------------------------------------------------------

def line(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def markdown(results):
    lines = [WARNING, ""] if is_rehearsed(results) else []
    lines += [f"Machine: {machine_of(results)}."]
    for table in tables.all_tables(results):
        lines += ["", f"## {table.title}", ""]
        lines += [line(name.rstrip(">") for name in table.header),
                  line("---:" if name.endswith(">") else "---" for name in table.header)]
        lines += [line(row) for row in table.rows]
        lines += ["", table.note] if table.note else []
    return "\n".join(lines) + "\n"


# ---- Charts ------------------------------------------------------------------------------------

def bar_chart(title, names, groups, unit):
    """Draws horizontal bars: for each name one bar of each series. `groups` are (name, values)."""
    largest = max((value for _, values in groups for value in values if value), default=0)
    if not largest:
        return ""
    step = BAR * len(names) + 8
    height = 30 + step * len(groups) + 10
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" '
             f'aria-label="{html.escape(title)}">']
    for i, name in enumerate(names):
        parts.append(f'<rect x="{NAMES + i * 150}" y="4" width="10" height="10" '
                     f'fill="{COLOURS[i]}"/><text x="{NAMES + i * 150 + 14}" y="13">'
                     f'{html.escape(name)}</text>')
    for row, (name, values) in enumerate(groups):
        top = 26 + row * step
        parts.append(f'<text x="{NAMES - 8}" y="{top + step / 2}" text-anchor="end">'
                     f'{html.escape(name)}</text>')
        for i, value in enumerate(values):
            if value is None:
                continue
            length = max(1.0, (WIDTH - NAMES - 90) * value / largest)
            y = top + i * BAR
            parts.append(f'<rect x="{NAMES}" y="{y}" width="{length:.1f}" height="{BAR - 2}" '
                         f'fill="{COLOURS[i]}"/><text x="{NAMES + length + 4:.1f}" y="{y + 10}">'
                         f'{value:,.1f} {unit}</text>')
    return "".join(parts) + "</svg>"


def plan_groups(results, figure):
    groups = []
    for case, result in tables.in_stage(results, *tables.PLANNED):
        if "report" in result:
            name = " ".join([*tables.network(result), tables.label(case)])
            groups.append((name, [figure(result["report"][run]) for run in ("keep_all", "plan")]))
    return groups


def memory_of(run):
    """Returns the driver's count, or the sum of the buffers if the driver did not count."""
    return (run["driver_peak_bytes"] or run["counted_peak"]["total_bytes"]) / tables.MIB


def time_of(run):
    return None if run["seconds"] is None else run["seconds"] * 1000


def overhead_groups(results):
    groups = []
    for case, result in tables.in_stage(results, *tables.PLANNED):
        report = result.get("report", {})
        if report.get("measured_overhead") is not None:
            name = " ".join([*tables.network(result), tables.label(case)])
            groups.append((name, [None if report[key] is None else max(0, report[key]) * 100
                                  for key in ("predicted_overhead", "measured_overhead")]))
    return groups


def side_groups(results, of_report, of_pytorch):
    groups = []
    for case, result in tables.in_stage(results, "pytorch"):
        start = " ".join(tables.network(result))
        if "report" in result:
            for run in ("keep_all", "plan"):
                groups.append((f"{start} {tables.label(case)} {run.replace('_', ' ')}",
                               [of_report(result["report"], run), None]))
        elif "pytorch" in result:
            groups.append((f"{start} PyTorch {tables.label(case)}",
                           [None, of_pytorch(result["pytorch"])]))
    return groups


def charts(results):
    schedules = ["keeping all", "the plan"]
    sides = ["ckexec", "PyTorch"]
    return [
        ("Peak of activations, gradients and workspaces, by the driver where it counts",
         bar_chart("Peak", schedules, plan_groups(results, memory_of), "MiB")),
        ("Time of a step", bar_chart("Time", schedules, plan_groups(results, time_of), "ms")),
        ("Overhead of the plan, as predicted and as measured",
         bar_chart("Overhead", ["predicted", "measured"], overhead_groups(results), "%")),
        ("Peaks of PyTorch and ckplan, including parameters, their gradients and the batch",
         bar_chart("Peak", sides, side_groups(
             results, lambda report, run: (tables.whole(report, run, "driver")
                                           or tables.whole(report, run)) / tables.MIB,
             lambda side: side["peak_bytes"] / tables.MIB), "MiB")),
        ("Step times of PyTorch and ckplan",
         bar_chart("Time", sides, side_groups(
             results, lambda report, run: time_of(report[run]),
             lambda side: side["seconds"] * 1000), "ms")),
    ]


# ---- The page ----------------------------------------------------------------------------------

def cell(tag, text, is_number):
    return f'<{tag}{" class=n" if is_number else ""}>{html.escape(str(text))}</{tag}>'


def table_html(table):
    numbers = [name.endswith(">") for name in table.header]
    head = "".join(cell("th", name.rstrip(">"), is_number)
                   for name, is_number in zip(table.header, numbers))
    rows = "".join("<tr>" + "".join(cell("td", text, is_number)
                                    for text, is_number in zip(row, numbers)) + "</tr>"
                   for row in table.rows)
    note = f"<p>{html.escape(table.note)}</p>" if table.note else ""
    return f"<h2>{html.escape(table.title)}</h2><table><tr>{head}</tr>{rows}</table>{note}"


def page(results):
    parts = ["<!doctype html><meta charset=utf-8><title>ckplan on a GPU</title>",
             f"<style>{STYLE}</style><h1>ckplan on a GPU</h1>",
             f"<p>{html.escape(machine_of(results))}</p>"]
    if is_rehearsed(results):
        parts.append(f"<p class=warn>{WARNING}</p>")
    parts += [f"<h2>{html.escape(title)}</h2>{chart}" for title, chart in charts(results) if chart]
    parts += [table_html(table) for table in tables.all_tables(results)]
    return "\n".join(parts) + "\n"


def write_whole(path, text):
    """Writes the file atomically."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def write(folder):
    results = results_of(read_records(os.path.join(folder, FILE)))
    write_whole(os.path.join(folder, f"{NAME}.md"), markdown(results))
    write_whole(os.path.join(folder, f"{NAME}.html"), page(results))


def main(folder):
    if not os.path.exists(os.path.join(folder, FILE)):
        print(f"test-gpu: there is no {FILE} in {folder}; name the folder of a campaign",
              file=sys.stderr)
        return 2
    write(folder)
    print(f"{os.path.join(folder, NAME)}.html and .md")
    return 0
