// What is said of a source's graph and plans, whichever kind of graph the source has.
#pragma once

#include <memory>
#include <string>

#include "lib/explain/planned_graph.h"
#include "lib/plan/diff.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

// The graph that plans are of, for explanations and pictures. Refers to the source.
std::unique_ptr<PlannedGraph> PlannedGraphOf(const Source& source);

// The plan's file, and what `diff` reads of it. `plan` is one of the source.
std::string PlanJsonOf(const Source& source, const Plan& plan);
PlanDigest DigestOf(const Source& source, const Plan& plan);

}  // namespace ckplan
