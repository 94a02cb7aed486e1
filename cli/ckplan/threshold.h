// The limits of --fail-on, and whether a plan or a model stays within them.
//
// For a plan, in `ckplan check`:
//   peak>16GiB      the simulated peak, in bytes
//   peak>60%        the same, as a share of the peak of keeping everything
//   arena>18GB      the size of the slab
//   total>24GiB     the peak and what no plan changes: parameters, gradients, optimizer, inputs
//   overhead>5%     recomputed forward cost, relative to a training step without recomputation
//   peak:+1%        growth of the peak over the plan of --against, in percent or as a size
//                   (peak:+10MiB)
//   arena:+1%       growth of the slab
//   total:+1%       growth of the peak with constants
//   time:+2%        growth of the whole cost of a training step with recomputation; only in percent
//
// For a model, in `ckplan inspect`:
//   peak>16GiB, total>24GiB         if everything is kept
//   activations>8GiB, saved>8GiB    results of the forward pass, and those that backward reads
//   parameters>2GiB
//   warnings>0                      the number of warnings about the model
//
// A value that equals its limit is within it. Nothing is rounded before it is compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/base/result.h"
#include "lib/emit/json_writer.h"
#include "lib/plan/diff.h"

namespace ckplan {

enum class Metric {
  kPeak,
  kArena,
  kTotal,
  kOverhead,
  kTime,
  kActivations,
  kSaved,
  kParameters,
  kWarnings
};

std::string_view NameOf(Metric metric);  // "peak"

enum class LimitSubject { kPlan, kModel };

struct Threshold {
  enum class Unit { kBytes, kPercent, kCount };
  std::string text;  // The limit as it was typed.
  Metric metric = Metric::kPeak;
  bool is_growth = false;
  Unit unit = Unit::kBytes;
  // Bytes, a count, or millionths of a percent: 5% is 5'000'000.
  int64_t value = 0;
};

// Returns kUsage if the text is not a limit on the subject.
Result<Threshold> ParseThreshold(const std::string& text,
                                 LimitSubject subject = LimitSubject::kPlan);

struct Verdict {
  std::string threshold;  // The limit as it was typed.
  std::string check;      // "peak-limit", "peak-growth": does not depend on the numbers.
  Metric metric = Metric::kPeak;
  bool holds = true;
  std::string message;  // "peak 17.00 GiB (18253611008 bytes) is above 16GiB"
};

// The older plan, whose figures limits on growth start from.
struct OlderPlan {
  std::optional<PlanDigest> plan;
  // The reason why there is none, for a plan that may be new: limits on growth then hold.
  std::string absence;
};

// Returns kUsage for a limit on growth with neither an older plan nor a reason why there is none,
// and for a limit on the growth of time between plans with costs from different models.
Result<std::vector<Verdict>> JudgeThresholds(const std::vector<Threshold>& thresholds,
                                             const PlanFigures& figures, const PlanRequest& request,
                                             const OlderPlan& older);

// The measures of a model that limits are compared with.
struct ModelMeasures {
  Bytes peak;
  Bytes constants;  // Parameters, their gradients, optimizer state and inputs.
  Bytes activations;
  Bytes saved;
  Bytes parameters;
  int64_t warnings = 0;
};
std::vector<Verdict> JudgeThresholds(const std::vector<Threshold>& thresholds,
                                     const ModelMeasures& model);

// Returns a line for each verdict: "FAIL peak>16GiB   peak 17.00 GiB ...". `label`, if not empty,
// precedes the limit.
std::string VerdictLines(const std::vector<Verdict>& verdicts, const std::string& label,
                         const Terminal& terminal);
// {"limit": "peak>16GiB", "ok": true, "why": "..."}
void WriteVerdict(const Verdict& verdict, JsonWriter* json);
bool AllHold(const std::vector<Verdict>& verdicts);
// Prints an error with the number of limits that `path` fails, and lists them unless `is_reported`.
void PrintFailures(const std::string& path, const std::vector<Verdict>& verdicts, bool is_reported);

}  // namespace ckplan
