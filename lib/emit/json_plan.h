// plan.json: everything needed to replay a plan and to check it, given the model.
// schemas/plan.schema.json describes it; its top level reads
//
//   schema_version, tool   who wrote it
//   model                  which model it is for, and with which dimensions
//   request                what was asked
//   result                 the figures, and what is proven about them
//   nodes                  one row per node: its action, segment, recomputations, and outputs
//   schedule               the steps, nodes and tensors by their ids in the graph
//   arena                  one offset per buffer, in the order of their allocation
//
// The plan of a joint graph has the same keys: its nodes are operations, its tensors values, and
// its steps runs.
//
// Guarantees ReadPlanJson(WritePlanJson(p, g), g) == p where names are UTF-8. The same plan gives
// the same bytes everywhere: no times, hosts or paths are in it. About 300 bytes per node.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/diff.h"
#include "lib/plan/plan.h"

namespace ckplan {

// `plan` must be a plan for `graph`.
std::string WritePlanJson(const Plan& plan, const TensorGraph& graph);
std::string WritePlanJson(const Plan& plan, const JointGraph& graph);

// What a plan says about itself without its graph: enough to load the model and to lower it as it
// was lowered for the plan.
struct PlanHeader {
  PlanRequest request;
  ModelIdentity model;
};
Result<PlanHeader> ReadPlanHeader(std::string_view text, const std::string& where);

// Whether the text is JSON that says what was asked for: a plan, whole or damaged, and no graph.
bool HasRequest(std::string_view text);

// Reads the figures too, and the table of nodes by their names.
Result<PlanDigest> ReadPlanDigest(std::string_view text, const std::string& where);

// Reading ignores fields that it does not know. kInvalidInput: damaged text, an unknown major
// version, a plan for another graph (other ids, another number of nodes). It does not judge the
// schedule or the figures; lib/plan/check does. `where` names the text in messages.
Result<Plan> ReadPlanJson(std::string_view text, const TensorGraph& graph,
                          const std::string& where);
Result<Plan> ReadPlanJson(std::string_view text, const JointGraph& graph, const std::string& where);

}  // namespace ckplan
