// plan.json: everything needed to replay a plan and to check it, given the model.
// schemas/plan.schema.json describes it; its top level reads
//
//   schema_version, tool   the program that wrote it
//   model                  the model, and its dimensions
//   request                the user's request
//   result                 the figures and the proofs about them
//   nodes                  one row per node: its action, segment, recomputations and outputs
//   schedule               the steps, nodes and tensors by their ids in the graph
//   arena                  one offset per buffer, in the order of their allocation
//
// The plan of a joint graph has the same keys: its nodes are operations, its tensors values, and
// its steps runs.
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

// `plan` must be a plan for the step.
std::string WritePlanJson(const Plan& plan, const TrainingStep& step);

// The part of a plan file that can be read without its graph: enough to load the model and to lower
// it as it was lowered for the plan.
struct PlanHeader {
  PlanRequest request;
  ModelIdentity model;
};
Result<PlanHeader> ReadPlanHeader(std::string_view text, const std::string& where);

// Returns whether the text is JSON with a request: a plan, whole or damaged, but not a graph.
bool HasRequest(std::string_view text);

// Also reads the figures and the table of nodes, by their names.
Result<PlanDigest> ReadPlanDigest(std::string_view text, const std::string& where);

// Reads a plan, ignoring unknown fields. kInvalidInput: damaged text, an unknown major version, or
// a plan for another graph (other ids, another number of nodes). The schedule and the figures are
// not checked here; lib/planning/plan/check does that. `where` names the text in messages.
Result<Plan> ReadPlanJson(std::string_view text, const TrainingStep& step,
                          const std::string& where);

}  // namespace ckplan
