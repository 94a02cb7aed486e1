// What is asked for, from the dimensions of the model to the memory budget, and the table of its
// fields.
//
//   command line ── cli/common/request_flags ──▶ PlanRequest ◀── lib/emit/json_request ── plan.json
//                                                    │
//                      LoadSource reads the model by it, MakePlan plans by it
//
// The table says of each field how plan files name it, which words it takes, and what it means for
// two plans to differ in it. Command lines, plan files, the comparison of two plans and the command
// that makes a plan once more are driven by it, so that a new field is added in few places:
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

#include "lib/base/units.h"
#include "lib/graph/layer_fold.h"
#include "lib/ops/autograd.h"

namespace ckplan {

enum class Objective { kTime, kMemory };
enum class Optimizer { kSgd, kMomentum, kAdam };
// How float tensors of the batch, and their gradients, are stored. Parameters, their gradients and
// what nodes save as statistics are not meant.
enum class ActivationType { kOfModel, kFloat32, kBFloat16 };

std::string_view NameOf(Objective objective);
std::string_view NameOf(Granularity granularity);
std::string_view NameOf(Optimizer optimizer);
std::string_view NameOf(Autograd autograd);
std::string_view NameOf(ActivationType type);  // "model", "float32", "bf16"

// A limit on memory, as it is asked for.
struct Budget {
  enum class Kind {
    kNone,     // No limit: the choice of the algorithm's paper.
    kBytes,    // At most `bytes`.
    kPercent,  // At most `percent` of the peak of keeping all, in the graph's own order.
    kMin,      // The least that the algorithm reaches.
  };
  Kind kind = Kind::kNone;
  Bytes bytes;
  double percent = 0;

  static Budget Of(Bytes bytes) { return {Kind::kBytes, bytes, 0}; }
  bool is_given() const { return kind != Kind::kNone; }
  // Nothing for the other kinds.
  std::optional<Bytes> in_bytes() const {
    return kind == Kind::kBytes ? std::optional(bytes) : std::nullopt;
  }
  bool operator==(const Budget&) const = default;
};

using DimSizes = std::map<std::string, int64_t>;
using InputShapes = std::map<std::string, std::vector<int64_t>>;

inline constexpr std::string_view kDefaultAlgorithm = "approx-dp";

// Two equal requests for the same model give the same plan, to the byte. The request in a plan is
// settled: dimensions are all those bound, costs are named in full, and budgets are in bytes.
struct PlanRequest {
  // How the model is read.
  DimSizes dims;             // Sizes of symbolic dimensions.
  InputShapes input_shapes;  // Overridden ones alone.
  // "flops:a100-40g", "file:costs.json". Empty: flops for a model, a graph file's own costs. In a
  // plan: "file", for no plan holds a path, or "graph" for a graph file's own.
  std::string cost_model;
  std::string cost_unit;  // "ns"; in a plan alone.
  Autograd autograd = Autograd::kMinimal;
  ActivationType activation_type = ActivationType::kOfModel;
  int64_t align_bytes = 1;

  // What to plan.
  std::string algorithm = std::string(kDefaultAlgorithm);  // Name in the registry.
  Objective objective = Objective::kTime;
  Granularity granularity = Granularity::kNode;  // What the algorithm decides on.
  // At most one budget is given.
  Budget budget;        // On the simulated peak, constants left out.
  Budget total_budget;  // The peak and the constants together; a plan states it as a `budget`.
  Budget paper_budget;  // On the algorithm's own objective; never a percentage.
  Optimizer optimizer = Optimizer::kSgd;
  bool uses_liveness = true;  // If not, frees are explicit: lower_without_liveness.h.

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
                 WordsMember>;

struct RequestField {
  enum class Part {
    kModel,  // Which form of the model; under "model" in plan files.
    kGraph,  // How the model becomes a graph.
    kPlan,   // How the graph is planned.
  };
  enum class InFile { kRequired, kOptional, kUnlessDefault, kNever };

  std::string_view name;  // By which errors refer to it (Remedy), and programs find it.
  std::string_view key;   // In plan files, where it is `in_file`.
  Part part = Part::kPlan;
  InFile in_file = InFile::kOptional;  // Whether files must have it; kUnlessDefault: written so.
  RequestMember member;
  // A sentence for a diff of two plans that differ in this field, with {} for either value. Empty:
  // the difference needs no warning.
  std::string_view difference = {};
  // The values of a bool or of words in that sentence, where they are not the words themselves.
  std::span<const std::string_view> spoken = {};
};

// In the order of plan files.
std::span<const RequestField> RequestFields();
const RequestField& FieldOf(std::string_view name);  // There must be one of that name.

// The value as people type it: "60%", "adam"; one text for each entry of dims and input shapes, and
// none for a field that is as if nothing was asked.
std::vector<std::string> TextsOf(const RequestField& field, const PlanRequest& request);
bool IsDefault(const RequestField& field, const PlanRequest& request);
void CopyField(const RequestField& field, const PlanRequest& from, PlanRequest* to);

// One sentence for each field that keeps two plans from being compared as they are.
std::vector<std::string> DifferencesOf(const PlanRequest& older, const PlanRequest& newer);
// Whether times of the one and of the other are in the same unit by the same model.
bool HaveSameCosts(const PlanRequest& a, const PlanRequest& b);

}  // namespace ckplan
