// Writes plans as a page for a browser: memory over time by kind, the schedule, the memory at the
// peak or at any other step, the curve of memory against time, and all tensors; two plans side by
// side.
//
// The page is a single file. It needs no network, has colours for light and dark screens that
// colour-blind readers can distinguish, and works by mouse or keyboard. Its sources are in
// lib/files/emit/report: page.html with page.css and the scripts, compiled into the program. The
// page contains the data as JSON, which this file writes. The same plans give the same bytes
// everywhere.
//
// Names come from outside. They are made printable, shortened to kLongestName, and escaped so that
// none ends the element that holds the data; the scripts insert them into the page as plain text
// only.
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
  std::string failure;  // The reason if there are no points, else empty.
  size_t plan = 0;      // The index of one of that graph's plans.
};

// `plans` has at least one plan; `curves` may be empty.
std::string WriteReport(std::span<const ReportPlan> plans, std::span<const ReportCurve> curves);

// Returns the JSON text in a form that is safe inside a script element: the HTML parser finds no
// tag and no comment in it.
std::string JsonInScript(std::string_view json);

// The report's page without its data, compiled into the program from lib/files/emit/report.

// The HTML has the places {{title}}, {{style}}, {{data}} and {{script}}.
std::string_view ReportHtml();
std::string_view ReportStyle();
std::string_view ReportScript();

}  // namespace ckplan
