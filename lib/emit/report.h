// Plans as a page for a browser: memory over time by kind, the schedule, what is in memory at the
// peak or at any other step, the curve of memory against time, all tensors; of two plans side by
// side.
//
// The page is one file. It needs no network, has colours for light and for dark screens that
// colour-blind readers tell apart, and is used by mouse or by keyboard. Its sources are in
// lib/emit/report: page.html with page.css and the scripts, compiled into the program; the data
// stand in the page as JSON, which this file writes. The same plans give the same bytes everywhere.
//
// Names come from outside. They are made printable, shortened to kLongestName, escaped so that none
// ends the element that holds the data, and the scripts put them into the page as text alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/explain/traced_plan.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct ReportPlan {
  std::string name;  // What the page calls it: "plan.json".
  const TracedPlan* traced = nullptr;
};

// The curve of memory against time of a graph (lib/planner/pareto.h).
struct ReportCurve {
  std::string name;  // "best, N=64"
  std::vector<CurvePoint> points;
  std::string failure;  // Why there are no points; else empty.
  size_t plan = 0;      // One of the plans of that graph.
};

// One plan or more. `curves` may be empty.
std::string WriteReport(std::span<const ReportPlan> plans, std::span<const ReportCurve> curves);

// The JSON text as it may stand inside a script element: the parser of HTML finds no tag and no
// comment in it.
std::string JsonInScript(std::string_view json);

}  // namespace ckplan
