// What the user requests, from the model's dimensions to the memory budget.
//
//   command line ── cli/common/request_flags ──▶ PlanRequest ◀── lib/files/emit/json_request ──
//   plan.json
//                                                    │
//                      LoadSource reads the model with it, MakePlan plans with it
//
// request_fields.h lists the fields for parsing, reading, writing and comparing.
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

// What an algorithm decides about: nodes, or layers (lib/problem/graph/layer_fold.h).
enum class Granularity { kNode, kLayer };

inline constexpr std::string_view kGranularityWords[] = {"node", "layer"};
inline std::string_view NameOf(Granularity granularity) {
  return kGranularityWords[static_cast<size_t>(granularity)];
}

// What one backward step computes (BackwardForm): the gradients of a node's inputs, as executors
// do, or those of its outputs, as papers count memory. kAuto is by node with liveness and by input
// without. Plans state which.
enum class BackwardSteps { kAuto, kByNode, kByInput };

inline constexpr std::string_view kBackwardStepsWords[] = {"auto", "by-node", "by-input"};
inline std::string_view NameOf(BackwardSteps backward) {
  return kBackwardStepsWords[static_cast<size_t>(backward)];
}

// optimizer_state.h lists the state of each.
enum class Optimizer { kSgd, kMomentum, kAdam, kAdamW, kAdam8Bit };

inline constexpr std::string_view kOptimizerWords[] = {"sgd", "momentum", "adam", "adamw",
                                                       "adam8bit"};
inline std::string_view NameOf(Optimizer optimizer) {
  return kOptimizerWords[static_cast<size_t>(optimizer)];
}

// How the gradients of parameters are counted.
//   kAuto      not in peaks; budgets that include constants count all of them; the memory that
//              training needs (plan/accounting.h) counts each from the operation that computes it,
//              as when a training step starts without gradients
//   kConstant  the same, but all count throughout the step, as when gradients of several batches
//              are accumulated
//   kArriving  peaks count each from the operation that computes it; a model's training step is
//              then planned as a joint graph (lib/problem/graph/joint_graph.h)
enum class ParameterGradients { kAuto, kConstant, kArriving };

inline constexpr std::string_view kParameterGradientsWords[] = {"auto", "constant", "arriving"};
inline std::string_view NameOf(ParameterGradients gradients) {
  return kParameterGradientsWords[static_cast<size_t>(gradients)];
}

// How long the algorithm `best` may search: about 3, 0.3 and 30 s for 500 operations. Measured in
// work, not time, so that a request gives the same plan on any machine.
enum class SearchEffort { kNormal, kQuick, kThorough };

inline constexpr std::string_view kSearchEffortWords[] = {"normal", "quick", "thorough"};
inline std::string_view NameOf(SearchEffort effort) {
  return kSearchEffortWords[static_cast<size_t>(effort)];
}

// The algorithm that finds the fastest known plan and certifies it: see
// lib/planning/algorithms/best/best.h.
inline constexpr std::string_view kBestAlgorithm = "best";
inline constexpr std::string_view kDefaultAlgorithm = kBestAlgorithm;

// Equal requests for the same model give identical plans. A plan stores the resolved request: all
// dimensions bound, the full name of the cost model, and budgets in bytes.
struct PlanRequest {
  // How the model is read.
  DimSizes dims;  // Sizes of symbolic dimensions.
  // Names of settings that a model may lack (lib/files/model/used_settings.h). Not stored in plans.
  std::set<std::string> optional_dims;
  // Names of fields with default values, which a source that can't use them ignores. Not stored in
  // plans.
  std::set<std::string> implied;
  InputShapes input_shapes;  // Only those that are overridden.
  int64_t batch = 0;         // Replaces a batch size fixed in the model; 0: keeps it.
  // "flops:a100-40g", "file:costs.json". Empty means flops for a model, and a graph file's own
  // costs. In a plan, "file" stands for costs from a file, whose path is not stored, and "graph"
  // for a graph file's own.
  std::string cost_model;
  std::string cost_unit;  // "ns"; set only in plans.
  // A file of the operators' workspaces; empty: those of the cost model, or none. In a plan, "file"
  // if there was one, whose path is not stored.
  std::string workspaces;
  Autograd autograd = Autograd::kMinimal;
  ActivationType activation_type = ActivationType::kOfModel;
  FusedOperators fused = FusedOperators::kNone;
  RestoredOperators restored = RestoredOperators::kNone;
  Rounding rounding = Rounding::kStraightThrough;
  ParameterGradients gradients = ParameterGradients::kAuto;
  // Which part of the file is trained, and what is known about it; see lib/files/model/step_part.h,
  // input_uses.h, known_value.h and op_hint.h.
  NamePatterns outputs;  // Values or nodes at which the step ends; empty: the file's.
  NamePatterns weights;  // Inputs that are parameters.
  std::vector<std::string> set_inputs;  // Inputs and their values: "mask=[1,0]".
  std::vector<std::string> op_shapes;   // What unknown operators do: "acme::Norm=like:0".
  NamePatterns freeze;                  // Parameters that are not trained.
  std::optional<Sharding> sharding;     // Across devices; nullopt: one device.
  // One stage of a pipeline; nullopt: the whole model, and the next three don't apply.
  std::optional<PipelineStage> pipeline;
  int64_t micro_batches = 0;  // Per step; at least 1 with a pipeline.
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  std::vector<std::string> stage_cuts;  // Names; empty: stages are balanced.
  int64_t align_bytes = 1;
  // The link over which plans may move values to the host and back
  // (lib/problem/schedule/transfers.h); nullopt: every value stays on the device, and the other two
  // fields of offload don't apply.
  std::optional<Link> offload;

  // What to plan.
  std::string algorithm = std::string(kDefaultAlgorithm);  // A name from the registry.
  Objective objective = Objective::kAuto;
  Granularity granularity = Granularity::kNode;  // What the algorithm decides about.
  // At most one of the four budgets and the added time is set.
  Budget budget;        // On the simulated peak without constants.
  Budget total_budget;  // On the peak plus constants. Stored in plans as `budget`.
  // On all memory that training needs on the device: the peak, the constants, and memory outside
  // tensors (accounting.h). Always in bytes. Stored in plans as `budget`.
  Budget memory;
  std::optional<Bytes> reserve;  // With `memory`: replaces memory outside tensors.
  Budget paper_budget;           // On the algorithm's own objective; in bytes or kMin.
  // Minimizes the peak among plans that add at most this percentage to a step without
  // recomputation. The resulting plan stores its own peak as `budget`.
  Budget added_time;
  std::optional<Decisions> decisions;           // For the algorithm `given`.
  SearchEffort effort = SearchEffort::kNormal;  // For the algorithm `best`.
  StepOrder order = StepOrder::kModel;          // kFree: for the algorithms `best` and `given`.
  std::optional<KnobSetting> setting;           // If absent, the algorithm or a search chooses it.
  Optimizer optimizer = Optimizer::kSgd;
  // Parameters stored in 16 bits have float32 copies, and the optimizer's values are float32.
  bool has_master_weights = false;
  // Constraints on plans: see constraints.h.
  NamePatterns keep;         // Nodes, tensors: run once and kept for backward.
  NamePatterns recompute;    // Nodes, tensors: recomputed for backward.
  NamePatterns never_rerun;  // Nodes, operations: run once.
  // With `offload`: a limit on host memory for moved values, and the tensors, or all outputs of
  // nodes, that stay on the device. Kept and recomputed ones stay there as well.
  std::optional<Bytes> host_budget;
  NamePatterns never_offload;
  // If false, tensors are freed explicitly: see canonical_strategy.h.
  bool uses_liveness = true;
  BackwardSteps backward = BackwardSteps::kAuto;  // Without liveness, not by node.

  bool operator==(const PlanRequest&) const = default;
};

// Returns a request for a training step as PyTorch runs it on a GPU: PyTorch's operators, the
// tensors its autograd saves, and AdamW. This is the default of `ckplan`, so a graph file ignores
// the parts that it can't have (`implied`). A plain PlanRequest reads a model operator by operator,
// as the papers do.
PlanRequest RequestAsPyTorchRuns();

// Files that a plan was made with. Plans don't store their paths.
struct FilesOfPlan {
  std::optional<std::string> cost;        // The text of a cost model: "file:costs.json".
  std::optional<std::string> workspaces;  // "workspaces.json"
};

}  // namespace ckplan
