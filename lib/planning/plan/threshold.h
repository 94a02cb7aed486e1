// Limits on the figures of a plan or a model, and whether they hold.
//
// Limits on a plan:
//   peak, arena     the simulated peak, and the size of the slab, in bytes; the peak also in
//                   percent of the keep-all peak
//   total           the peak plus what no plan changes: parameters, gradients, optimizer, inputs
//   need            all memory that training needs on the device (accounting.h)
//   overhead        the cost of recomputation, in percent of a training step without it
//   growth          of peak, arena or total over an older plan, in percent or in bytes; of the time
//                   of a whole training step, in percent; of the curve: the largest increase of
//                   overhead within the same peak, in percent of a training step without
//                   recomputation
//
// Limits on a model:
//   peak, total, need        of keeping everything
//   activations, saved       the tensors that forward computes, and those that backward reads
//   parameters
//   warnings                 the number of warnings about the model
//
// A value equal to its limit is within it. Nothing is rounded before comparing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/budget.h"
#include "lib/planning/plan/diff.h"

namespace ckplan {

enum class Metric {
  kPeak,
  kArena,
  kTotal,
  kNeed,
  kOverhead,
  kTime,
  kCurve,
  kActivations,
  kSaved,
  kParameters,
  kWarnings
};

std::string_view NameOf(Metric metric);  // "peak"

struct Threshold {
  enum class Unit { kBytes, kPercent, kCount };
  std::string text;  // The limit as it was typed: "peak>16GiB", "peak:+1%".
  Metric metric = Metric::kPeak;
  bool is_growth = false;
  Unit unit = Unit::kBytes;
  // Bytes, a count, or millionths of a percent: 5% is 5'000'000.
  int64_t value = 0;
  Budget memory = {};  // For kNeed: the same value, with the device's name if one was typed.
};

// Returns the part after ">" in the limit's text.
std::string_view LimitOf(const Threshold& threshold);

struct Verdict {
  std::string threshold;  // The limit as it was typed.
  std::string check;      // "peak-limit" or "peak-growth"; it does not depend on the numbers.
  Metric metric = Metric::kPeak;
  bool holds = true;
  Bytes measured;       // For a limit in bytes: the size that was compared with it.
  std::string message;  // "peak 17.00 GiB (18253611008 bytes) is above 16GiB"
};

// The older plan that growth is measured against.
struct OlderPlan {
  std::optional<PlanDigest> plan;
  // Why there is no older plan, if that is allowed; then growth limits hold.
  std::string absence;
};

// Returns the memory that training needs on a device with this memory. The allocator's waste
// depends on it.
using NeedWithin = std::function<Bytes(const Budget& memory)>;

// Growth limits need an older plan or the reason for its absence. Times are comparable only if both
// plans have the same costs. `need` is for limits on the need.
std::vector<Verdict> EvaluateThresholds(const std::vector<Threshold>& thresholds,
                                        const PlanFigures& figures, const OlderPlan& older,
                                        const NeedWithin& need = {});

// The figures of a model that limits apply to.
struct ModelMeasures {
  Bytes peak;
  Bytes constants;  // Parameters, their gradients, optimizer state and inputs.
  Bytes activations;
  Bytes saved;
  Bytes parameters;
  int64_t warnings = 0;
  NeedWithin need = {};
};
std::vector<Verdict> EvaluateThresholds(const std::vector<Threshold>& thresholds,
                                        const ModelMeasures& model);

bool AllHold(const std::vector<Verdict>& verdicts);

}  // namespace ckplan
