// Writes one or two plans as an HTML page: memory over time by kind, the schedule, the memory at
// the peak or any other step, the curve of memory against time, and a table of tensors.
//
// The page is a single file that needs no network. It works with mouse or keyboard, and its colours
// suit light and dark screens and colour-blind readers. Its sources in lib/files/emit/report are
// compiled into the program; this file writes the page's data as JSON. The same plans give the same
// bytes on every platform.
//
// Names come from outside, so they are made printable, shortened to kLongestName, and escaped so
// that they cannot end the data element. The scripts insert them as plain text only.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

struct ReportPlan {
  std::string name;  // The plan's name on the page, such as "plan.json".
  const TracedPlan* traced = nullptr;
};

// A graph's curve of memory against time (lib/planning/planner/pareto.h).
struct ReportCurve {
  std::string name;  // For example "best, N=64".
  std::vector<CurvePoint> points;
  std::string failure;  // Why `points` is empty, or "".
  size_t plan = 0;      // The index of a plan for the curve's graph.
};

// `plans` has at least one plan; `curves` may be empty.
std::string WriteReport(std::span<const ReportPlan> plans, std::span<const ReportCurve> curves);

// Escapes JSON for a script element, so that the HTML parser finds no tags or comments in it.
std::string JsonInScript(std::string_view json);

// The parts of the page, compiled into the program from lib/files/emit/report. The HTML has the
// places {{title}}, {{style}}, {{data}} and {{script}}.
std::string_view ReportHtml();
std::string_view ReportStyle();
std::string_view ReportScript();

}  // namespace ckplan
