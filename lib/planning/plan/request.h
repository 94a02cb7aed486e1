// What the user asks for, from the dimensions of the model to the memory budget.
//
//   command line ── cli/common/request_flags ──▶ PlanRequest ◀── lib/files/emit/json_request ──
//   plan.json
//                                                    │
//                      LoadSource reads the model by it, MakePlan plans by it
//
// request_fields.h has the table of its fields, by which it is typed, read, written and compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/units.h"
#include "lib/planning/plan/budget.h"
#include "lib/planning/plan/decisions.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/planning/plan/objective.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/parallel/division.h"

namespace ckplan {

// The units that an algorithm decides about: nodes, or layers (lib/problem/graph/layer_fold.h).
enum class Granularity { kNode, kLayer };

inline constexpr std::string_view kGranularityWords[] = {"node", "layer"};
inline std::string_view NameOf(Granularity granularity) {
  return kGranularityWords[static_cast<size_t>(granularity)];
}

// What one backward step makes (BackwardForm): the gradients of a node's inputs, as executors do,
// or those of its outputs, as the papers count memory. Auto is by node with liveness, and by input
// without; plans say which.
enum class BackwardSteps { kAuto, kByNode, kByInput };

inline constexpr std::string_view kBackwardStepsWords[] = {"auto", "by-node", "by-input"};
inline std::string_view NameOf(BackwardSteps backward) {
  return kBackwardStepsWords[static_cast<size_t>(backward)];
}

// optimizer_state.h has what each of them keeps.
enum class Optimizer { kSgd, kMomentum, kAdam, kAdamW, kAdam8Bit };

inline constexpr std::string_view kOptimizerWords[] = {"sgd", "momentum", "adam", "adamw",
                                                       "adam8bit"};
inline std::string_view NameOf(Optimizer optimizer) {
  return kOptimizerWords[static_cast<size_t>(optimizer)];
}

// How the gradients of parameters are counted.
//   kAuto      peaks leave them out, and budgets that include constants count all of them; what
//              training needs of a device has each from the operation that makes it on (plan/
//              accounting.h), as where a training step begins without gradients
//   kConstant  the same, but all of them are there throughout the step, as where gradients of
//              several batches are summed up
//   kArriving  peaks have each from the operation that makes it on; a model's training step is then
//              planned as a joint graph (lib/problem/graph/joint_graph.h)
enum class ParameterGradients { kAuto, kConstant, kArriving };

inline constexpr std::string_view kParameterGradientsWords[] = {"auto", "constant", "arriving"};
inline std::string_view NameOf(ParameterGradients gradients) {
  return kParameterGradientsWords[static_cast<size_t>(gradients)];
}

// How long the algorithm `best` may search: about 3, 0.3 and 30 s for 500 operations. Counted in
// work, so that the same request gives the same plan on any machine.
enum class SearchEffort { kNormal, kQuick, kThorough };

inline constexpr std::string_view kSearchEffortWords[] = {"normal", "quick", "thorough"};
inline std::string_view NameOf(SearchEffort effort) {
  return kSearchEffortWords[static_cast<size_t>(effort)];
}

// With this name, the planner makes the plan of least time that is known, with a certificate: see
// lib/planning/algorithms/best/best.h.
inline constexpr std::string_view kBestAlgorithm = "best";
inline constexpr std::string_view kDefaultAlgorithm = kBestAlgorithm;

// Equal requests for the same model give the same plan, byte for byte. The request stored in a plan
// is settled: it has all bound dimensions, the full name of the costs, and budgets in bytes.
struct PlanRequest {
  // How the model is read.
  DimSizes dims;  // Sizes of symbolic dimensions.
  // Settings that a model may lack, by name (lib/files/model/used_settings.h). Not a part of plans.
  std::set<std::string> optional_dims;
  // Names of fields that have their default value. A source that can't use it ignores it. Not a
  // part of plans.
  std::set<std::string> implied;
  InputShapes input_shapes;  // Only those that are overridden.
  int64_t batch = 0;         // Replaces the batch that is burnt into the model; 0: none does.
  // "flops:a100-40g", "file:costs.json". Empty stands for flops for a model, and for a graph file's
  // own costs. In a plan it is "file" for costs from a file, whose path is not stored, or "graph"
  // for a graph file's own.
  std::string cost_model;
  std::string cost_unit;  // "ns"; set only in plans.
  // A file of the operators' workspaces; empty: the costs' own, or none. In a plan it is "file" if
  // there was one, whose path is not stored.
  std::string workspaces;
  Autograd autograd = Autograd::kMinimal;
  ActivationType activation_type = ActivationType::kOfModel;
  FusedOperators fused = FusedOperators::kNone;
  RestoredOperators restored = RestoredOperators::kNone;
  Rounding rounding = Rounding::kStraightThrough;
  ParameterGradients gradients = ParameterGradients::kAuto;
  // The part of the file that is trained, and what is known of it; see lib/files/model/step_part.h,
  // input_uses.h, known_value.h and op_hint.h.
  NamePatterns outputs;                 // Values or nodes at which the step ends; none: the file's.
  NamePatterns weights;                 // Inputs that are parameters.
  std::vector<std::string> set_inputs;  // Inputs with their contents: "mask=[1,0]".
  std::vector<std::string> op_shapes;   // What unknown operators do: "acme::Norm=like:0".
  NamePatterns freeze;                  // Parameters of the model that are not trained.
  std::optional<Sharding> sharding;     // Among devices; nothing: one has everything.
  // One stage of a pipeline; nothing: the whole model, and then none of the next three.
  std::optional<PipelineStage> pipeline;
  int64_t micro_batches = 0;  // In a step; with a pipeline at least 1.
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  std::vector<std::string> stage_cuts;  // Names; none: stages are balanced.
  int64_t align_bytes = 1;
  // The link over which plans may move values to the host and back
  // (lib/problem/schedule/transfers.h); nothing: every value stays on the device, and then none of
  // the other two fields of offload.
  std::optional<Link> offload;

  // What to plan.
  std::string algorithm = std::string(kDefaultAlgorithm);  // A name from the registry.
  Objective objective = Objective::kAuto;
  Granularity granularity = Granularity::kNode;  // What the algorithm decides about.
  // At most one of the four budgets and the added time is given.
  Budget budget;        // For the simulated peak without constants.
  Budget total_budget;  // For the peak and the constants together; a plan states it as a `budget`.
  // For all that training needs of the device: the peak, the constants, and what is outside of
  // tensors (accounting.h). Only bytes; a plan states it as a `budget`.
  Budget memory;
  std::optional<Bytes> reserve;  // With `memory`: replaces what is outside of tensors.
  Budget paper_budget;           // For the algorithm's own objective; in bytes or kMin.
  // Asks for the least peak among plans that add at most this to a step: a percentage of a step
  // without recomputation. The resulting plan states its own peak as its `budget`.
  Budget added_time;
  std::optional<Decisions> decisions;           // For the algorithm `given`.
  SearchEffort effort = SearchEffort::kNormal;  // For the algorithm `best`.
  StepOrder order = StepOrder::kModel;          // kFree: for the algorithms `best` and `given`.
  std::optional<KnobSetting> setting;  // The algorithm's own choice, or a search's, if absent.
  Optimizer optimizer = Optimizer::kSgd;
  // Parameters in 16 bits have copies in float32, and the optimizer keeps its values in float32.
  bool has_master_weights = false;
  // What plans must obey: see constraints.h.
  NamePatterns keep;         // Nodes, tensors: made once, and there for the backward pass.
  NamePatterns recompute;    // Nodes, tensors: not kept for the backward pass.
  NamePatterns never_rerun;  // Nodes, operations: run once.
  // With `offload`: a limit on the memory of the host for moved values, and the tensors, or all
  // that these nodes make, that stay on the device. Kept and recomputed ones stay there as well.
  std::optional<Bytes> host_budget;
  NamePatterns never_offload;
  // If false, tensors are released explicitly: see canonical_strategy.h.
  bool uses_liveness = true;
  BackwardSteps backward = BackwardSteps::kAuto;  // Without liveness, not by node.

  bool operator==(const PlanRequest&) const = default;
};

// Returns a request for a training step as PyTorch runs it on a GPU: with the operators that
// PyTorch calls, what its autograd saves, and AdamW. `ckplan` asks for it where no flag says
// otherwise. None of it was asked for, so a graph file ignores what it can't have (`implied`). A
// plain PlanRequest reads a model operator by operator, as the papers do.
PlanRequest RequestAsPyTorchRuns();

// Files that a plan was made with, whose paths plans do not store.
struct FilesOfPlan {
  std::optional<std::string> cost;        // The text of a cost model: "file:costs.json".
  std::optional<std::string> workspaces;  // "workspaces.json"
};

}  // namespace ckplan
