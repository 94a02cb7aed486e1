// plan.json: all data needed to replay and check a plan, given the model. See
// schemas/plan.schema.json. Its top-level keys:
//
//   schema_version, tool   the format, and the program that wrote it
//   model                  the model, and its dimensions
//   request                the user's request
//   result                 the figures and their proofs
//   nodes                  one row per node: its action, segment, recomputations and outputs
//   schedule               the steps, nodes and tensors by their ids in the graph
//   arena                  one offset per buffer, in allocation order
//
// A joint graph's plan has the same keys; its nodes are operations, its tensors are values, and its
// steps are runs.
//
// Guarantees ReadPlanJson(WritePlanJson(p, g), g) == p for UTF-8 names. The same plan gives the
// same bytes everywhere: it contains no times, hosts or paths. About 300 bytes per node.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// `plan` must be a plan for `step`.
std::string WritePlanJson(const Plan& plan, const TrainingStep& step);

// The part of a plan file that can be read without its graph: enough to load the model and build
// the graph with the plan's settings.
struct PlanHeader {
  PlanRequest request;
  ModelIdentity model;
};
Result<PlanHeader> ReadPlanHeader(std::string_view text, const std::string& where);

// Returns true for JSON with a request, that is, a (possibly damaged) plan, not a graph.
bool HasRequest(std::string_view text);

// Reads a plan without its graph: the header, the figures and the node table with names.
Result<PlanDigest> ReadPlanDigest(std::string_view text, const std::string& where);

// Reads a plan, ignoring unknown fields. kInvalidInput: damaged text, an unknown major version, or
// a plan for another graph (other ids, another number of nodes). Does not check the schedule and
// the figures; lib/planning/plan/check does. `where` names the text in messages.
Result<Plan> ReadPlanJson(std::string_view text, const TrainingStep& step,
                          const std::string& where);

}  // namespace ckplan
