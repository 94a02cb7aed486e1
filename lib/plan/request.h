// What the user asks for, from the dimensions of the model to the memory budget, and the table of
// its fields.
//
//   command line ── cli/common/request_flags ──▶ PlanRequest ◀── lib/emit/json_request ── plan.json
//                                                    │
//                      LoadSource reads the model by it, MakePlan plans by it
//
// The table says for each field what it is called in plan files, which words it takes, and what it
// means if two plans differ in it. Command lines, plan files, the comparison of two plans and the
// command that makes a plan again are driven by it, so that a new field is added in few places:
// docs/adding-a-flag.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/units.h"
#include "lib/graph/layer_fold.h"
#include "lib/ops/autograd.h"
#include "lib/parallel/pipeline.h"
#include "lib/parallel/sharding.h"
#include "lib/plan/decisions.h"

namespace ckplan {

// kAuto: least time, or memory-centric where that has no plan within the budget, as section 4.4 of
// Kusumoto et al. 2019 has it. Plans tell which of the two has made them.
enum class Objective { kAuto, kTime, kMemory };
enum class Optimizer { kSgd, kMomentum, kAdam };
// How float tensors of the batch, and their gradients, are stored. Parameters, their gradients and
// the statistics that nodes save are not affected.
enum class ActivationType { kOfModel, kFloat32, kBFloat16 };

// How the gradients of parameters are counted: with the constants, as if all of them were there
// throughout the step; or in the peak, each from the operation that makes it on. For the latter a
// model's training step is planned as a joint graph (lib/joint/joint_graph.h).
enum class ParameterGradients { kConstant, kArriving };

// How long the algorithm `best` may search: about 3, 0.3 and 30 s for 500 operations. Counted in
// work, so that the same request gives the same plan on any machine.
enum class SearchEffort { kNormal, kQuick, kThorough };

// In which orders the steps of a plan may come: forward in one order and backward in its reverse,
// or in any order in which everything that is read is there and sums of gradients keep their bits
// (lib/schedule/backward_order.h).
enum class StepOrder { kModel, kFree };

std::string_view NameOf(Objective objective);
std::string_view NameOf(Granularity granularity);
std::string_view NameOf(Optimizer optimizer);
std::string_view NameOf(SearchEffort effort);  // "normal", "quick", "thorough"
std::string_view NameOf(StepOrder order);      // "model", "free"
std::string_view NameOf(Autograd autograd);
std::string_view NameOf(ActivationType type);           // "model", "float32", "bf16"
std::string_view NameOf(ParameterGradients gradients);  // "constant", "arriving"
std::string_view NameOf(PipelineSchedule schedule);     // "1f1b", "gpipe"

// A limit on memory as the user states it.
struct Budget {
  enum class Kind {
    kNone,     // No limit; the algorithm makes the choice of its paper.
    kBytes,    // At most `bytes`.
    kPercent,  // At most `percent` of the peak of keeping everything, in the graph's own order.
    kMin,      // The smallest peak that the algorithm can reach.
  };
  Kind kind = Kind::kNone;
  Bytes bytes;
  double percent = 0;

  static Budget Of(Bytes bytes) { return {Kind::kBytes, bytes, 0}; }
  bool is_given() const { return kind != Kind::kNone; }
  // The bytes of a kBytes budget; nothing for the other kinds.
  std::optional<Bytes> in_bytes() const {
    return kind == Kind::kBytes ? std::optional(bytes) : std::nullopt;
  }
  bool operator==(const Budget&) const = default;
};

// A setting of an algorithm's knob (knob.h), such as 5 segments.
struct KnobSetting {
  std::string knob;  // Its name: "segments".
  int64_t value = 0;

  bool operator==(const KnobSetting&) const = default;
};

using DimSizes = std::map<std::string, int64_t>;
using InputShapes = std::map<std::string, std::vector<int64_t>>;

// With this name, the planner makes the plan of least time that is known, with a certificate: see
// lib/algorithms/best/best.h.
inline constexpr std::string_view kBestAlgorithm = "best";
inline constexpr std::string_view kDefaultAlgorithm = kBestAlgorithm;

// Equal requests for the same model give the same plan, byte for byte. The request stored in a plan
// is settled: it has all bound dimensions, the full name of the costs, and budgets in bytes.
struct PlanRequest {
  // How the model is read.
  DimSizes dims;             // Sizes of symbolic dimensions.
  InputShapes input_shapes;  // Only those that are overridden.
  // "flops:a100-40g", "file:costs.json". Empty stands for flops for a model, and for a graph file's
  // own costs. In a plan it is "file" for costs from a file, whose path is not stored, or "graph"
  // for a graph file's own.
  std::string cost_model;
  std::string cost_unit;  // "ns"; set only in plans.
  Autograd autograd = Autograd::kMinimal;
  ActivationType activation_type = ActivationType::kOfModel;
  ParameterGradients gradients = ParameterGradients::kConstant;
  NamePatterns freeze;               // Parameters of the model that are not trained.
  std::optional<Sharding> sharding;  // Among devices; nothing: one has everything.
  // One stage of a pipeline; nothing: the whole model, and then none of the next three.
  std::optional<PipelineStage> pipeline;
  int64_t micro_batches = 0;  // In a step; with a pipeline at least 1.
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  std::vector<std::string> stage_cuts;  // Names; none: stages are balanced.
  int64_t align_bytes = 1;

  // What to plan.
  std::string algorithm = std::string(kDefaultAlgorithm);  // A name from the registry.
  Objective objective = Objective::kAuto;
  Granularity granularity = Granularity::kNode;  // What the algorithm decides about.
  // At most one of the three budgets is given.
  Budget budget;        // For the simulated peak without constants.
  Budget total_budget;  // For the peak and the constants together; a plan states it as a `budget`.
  Budget paper_budget;  // For the algorithm's own objective; never a percentage.
  std::optional<Decisions> decisions;           // For the algorithm `given`.
  SearchEffort effort = SearchEffort::kNormal;  // For the algorithm `best`.
  StepOrder order = StepOrder::kModel;          // kFree: for the algorithms `best` and `given`.
  std::optional<KnobSetting> setting;  // The algorithm's own choice, or a search's, if absent.
  Optimizer optimizer = Optimizer::kSgd;
  // What plans must obey: see constraints.h.
  NamePatterns keep;         // Nodes, tensors: made once, and there for the backward pass.
  NamePatterns recompute;    // Nodes, tensors: not kept for the backward pass.
  NamePatterns never_rerun;  // Nodes, operations: run once.
  // If false, tensors are released explicitly: see lower_without_liveness.h.
  bool uses_liveness = true;

  bool operator==(const PlanRequest&) const = default;
};

// ---- The table of fields ----

// A field that takes one of a few words.
struct WordsMember {
  std::span<const std::string_view> words;
  size_t (*get)(const PlanRequest& request);
  void (*set)(PlanRequest* request, size_t word);
};

using RequestMember =
    std::variant<std::string PlanRequest::*, int64_t PlanRequest::*, bool PlanRequest::*,
                 Budget PlanRequest::*, DimSizes PlanRequest::*, InputShapes PlanRequest::*,
                 NamePatterns PlanRequest::*, std::optional<Sharding> PlanRequest::*,
                 std::optional<PipelineStage> PlanRequest::*,
                 std::optional<KnobSetting> PlanRequest::*, std::optional<Decisions> PlanRequest::*,
                 WordsMember>;

struct RequestField {
  enum class Part {
    kModel,  // Which variant of the model is planned; stored under "model" in plan files.
    kGraph,  // How the model becomes a graph.
    kPlan,   // How the graph is planned.
  };
  enum class InFile { kRequired, kUnlessDefault, kNever };

  std::string_view name;  // The name by which errors (Remedy) and programs refer to the field.
  std::string_view key;   // The key in plan files, if `in_file` is not kNever.
  Part part = Part::kPlan;
  // Whether plan files have the field; kUnlessDefault: only if it is not the default.
  InFile in_file = InFile::kRequired;
  RequestMember member;
  // The sentence that a comparison prints for two plans that differ in this field, with {} for each
  // of the two values. Empty: the difference needs no warning.
  std::string_view difference = {};
  // What that sentence calls the values of a bool or of words, if not by the words themselves.
  std::span<const std::string_view> spoken = {};
};

// In the order in which plan files list them.
std::span<const RequestField> RequestFields();
const RequestField& FieldOf(std::string_view name);  // A field of that name must exist.

// The value as people type it: "60%", "adam". Dims, shapes and patterns give one text for each; a
// field that has its default gives none.
std::vector<std::string> TextsOf(const RequestField& field, const PlanRequest& request);
bool IsDefault(const RequestField& field, const PlanRequest& request);
void CopyField(const RequestField& field, const PlanRequest& from, PlanRequest* to);

// One sentence for each field that makes two plans incomparable as they are.
std::vector<std::string> DifferencesOf(const PlanRequest& older, const PlanRequest& newer);

// A field in which two requests differ, whether their figures compare or not.
struct RequestDifference {
  std::string_view field;  // RequestField::name
  // As people type it: "60%", "adam"; empty where nothing is asked for.
  std::string older;
  std::string newer;
  // As it is read: "1.50 GiB (1610612736 bytes)", "none".
  std::string spoken_older;
  std::string spoken_newer;
};
// In the order of the table. Two sets of decisions are "given" and "others".
std::vector<RequestDifference> EachDifference(const PlanRequest& older, const PlanRequest& newer);

// Whether the times of both plans are in the same unit and from the same cost model.
bool HaveSameCosts(const PlanRequest& a, const PlanRequest& b);

}  // namespace ckplan
