// The limits of `ckplan check --fail-on`, and whether a plan stays within them.
//
//   peak>16GiB      the simulated peak, in bytes
//   arena>18GB      the size of the slab
//   total>24GiB     the peak and what no plan changes: parameters, gradients, optimizer, inputs
//   overhead>5%     forward cost run again, of a training step without recomputation
//   peak:+1%        growth over the plan of --against: of the peak,
//   arena:+1%       of the slab,
//   total:+1%       of the peak with constants,
//   time:+2%        of the whole cost of a training step, recomputation included
//
// A value that equals its limit is within it. Nothing is rounded before it is compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/plan/diff.h"

namespace ckplan {

enum class Metric { kPeak, kArena, kTotal, kOverhead, kTime };

std::string_view NameOf(Metric metric);  // "peak"

struct Threshold {
  std::string text;  // The limit as it was typed.
  Metric metric = Metric::kPeak;
  bool is_growth = false;
  Bytes bytes;  // For "peak>", "arena>", "total>".
  // For all other forms, in millionths of a percent: 5% is 5'000'000.
  int64_t millionths_percent = 0;
};

// kUsage: the text has none of these forms.
Result<Threshold> ParseThreshold(const std::string& text);

struct Verdict {
  std::string threshold;  // The limit as it was typed.
  std::string check;      // "peak-limit", "peak-growth": does not depend on the numbers.
  Metric metric = Metric::kPeak;
  bool holds = true;
  std::string message;  // "peak 17.00 GiB (18253611008 bytes) is above 16GiB"
};

// `old_plan` may be null if no threshold limits a growth. kUsage: a limit on growth without an old
// plan, or on growth of time between plans with costs from different models.
Result<std::vector<Verdict>> JudgeThresholds(const std::vector<Threshold>& thresholds,
                                             const PlanFigures& figures, const PlanRequest& request,
                                             const PlanDigest* old_plan);

}  // namespace ckplan
