#include "lib/planning/plan/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

// Large enough for sums of a few costs or sizes up to 2^63, times a percentage: 2^66 * 10^9 <
// 2^127.
using Wide = __int128;

constexpr int64_t kMillion = 1'000'000;

Wide CostOfStep(const PlanFigures& figures) {
  return Wide{figures.forward_cost.count()} + figures.backward_cost.count();
}

// True if part / whole exceeds the percentage.
bool IsAbove(Wide part, Wide whole, int64_t millionths_percent) {
  return part * 100 * kMillion > whole * millionths_percent;
}

// The percentage for messages only.
std::string PercentOf(Wide part, Wide whole) {
  if (whole == 0) return part > 0 ? "from nothing" : "0.00%";
  return fmt::format("{:+.2f}%", static_cast<double>(part) * 100 / static_cast<double>(whole));
}

Wide BytesOf(Metric metric, const PlanFigures& f) {
  if (metric == Metric::kArena) return f.arena.count();
  if (metric == Metric::kPeak) return f.peak.count();
  return Wide{f.peak.count()} + f.constants.parameters.count() +
         f.constants.parameter_gradients.count() + f.constants.inputs.count() +
         f.constants.unsharded.count() + f.optimizer_state.count();
}

// Totals in an unchecked file may exceed 2^63.
Bytes ClampToBytes(Wide count) {
  return Bytes(static_cast<int64_t>(std::min(count, Wide{Bytes::Max().count()})));
}

std::string BytesText(Wide count) {
  const Bytes bytes = ClampToBytes(count);
  return fmt::format("{} ({} bytes)", HumanBytes(bytes), bytes.count());
}

void EvaluateSize(const Threshold& threshold, Wide bytes, Verdict* verdict) {
  verdict->holds = bytes <= threshold.value;
  verdict->message = fmt::format("{} {} is {} {}", NameOf(threshold.metric), BytesText(bytes),
                                 verdict->holds ? "within" : "above", LimitOf(threshold));
  verdict->measured = ClampToBytes(bytes);
}

void ValidateShareOfKeepAll(const Threshold& threshold, const PlanFigures& figures,
                            Verdict* verdict) {
  const Wide keep_all = figures.baseline_peak.count();
  verdict->holds = !IsAbove(figures.peak.count(), keep_all, threshold.value);
  verdict->message =
      fmt::format("peak {} is {} {} of keep-all's {}", BytesText(figures.peak.count()),
                  verdict->holds ? "at most" : "above", LimitOf(threshold), BytesText(keep_all));
}

void EvaluateLimit(const Threshold& threshold, const PlanFigures& figures, Verdict* verdict) {
  if (threshold.unit == Threshold::Unit::kBytes) {
    EvaluateSize(threshold, BytesOf(threshold.metric, figures), verdict);
    return;
  }
  if (threshold.metric == Metric::kPeak) {
    ValidateShareOfKeepAll(threshold, figures, verdict);
    return;
  }
  const Wide step = CostOfStep(figures);
  verdict->holds = !IsAbove(figures.overhead.count(), step, threshold.value);
  verdict->message = fmt::format("overhead {} of a training step is {} {}",
                                 PercentOf(figures.overhead.count(), step),
                                 verdict->holds ? "within" : "above", LimitOf(threshold));
}

// Returns "+50.00%", or "+7.81 KiB (8000 bytes)" for a limit in bytes.
std::string GrowthText(Wide growth, Wide then, Threshold::Unit unit) {
  if (unit == Threshold::Unit::kPercent) return PercentOf(growth, then);
  return fmt::format("{}{}", growth < 0 ? "-" : "+", BytesText(growth < 0 ? -growth : growth));
}

void ValidateGrowth(const Threshold& threshold, const PlanFigures& figures, const PlanFigures& old,
                    Verdict* verdict) {
  const bool is_time = threshold.metric == Metric::kTime;
  const auto value_of = [&](const PlanFigures& f) {
    return is_time ? CostOfStep(f) + f.overhead.count() : BytesOf(threshold.metric, f);
  };
  const Wide now = value_of(figures);
  const Wide then = value_of(old);
  verdict->holds = threshold.unit == Threshold::Unit::kPercent
                       ? !IsAbove(now - then, then, threshold.value)
                       : now - then <= threshold.value;
  const auto text = [&](Wide value) {
    return is_time ? fmt::format("{:.0f}", static_cast<double>(value)) : BytesText(value);
  };
  verdict->message =
      fmt::format("{} went from {} to {}, {}; {} {}", NameOf(threshold.metric), text(then),
                  text(now), GrowthText(now - then, then, threshold.unit),
                  verdict->holds ? "the limit is" : "above the limit of",
                  std::string_view(threshold.text).substr(threshold.text.find('+')));
}

// Both plans must have a curve.
void ValidateCurve(const Threshold& threshold, const PlanFigures& figures, const PlanFigures& old,
                   Verdict* verdict) {
  const Wide step = CostOfStep(figures);
  std::optional<CurveChange> worst;
  const auto growth = [](const CurveChange& row) {
    return Wide{row.newer->count()} - row.older->count();
  };
  for (const CurveChange& row : CompareCurves(old.curve, figures.curve)) {
    if (!row.older) continue;
    if (!row.newer) {
      verdict->holds = false;
      verdict->message =
          fmt::format("the curve no longer has a plan within {}", BytesText(row.peak.count()));
      return;
    }
    if (!worst || growth(row) > growth(*worst)) worst = row;
  }
  if (!worst) {
    verdict->message = "the older curve has no plan within the peaks of this one";
    return;
  }
  verdict->holds = !IsAbove(growth(*worst), step, threshold.value);
  verdict->message = fmt::format(
      "the curve went from {} to {} of a training step within {}, {}; {} {}",
      PercentOf(worst->older->count(), CostOfStep(old)), PercentOf(worst->newer->count(), step),
      BytesText(worst->peak.count()), PercentOf(growth(*worst), step),
      verdict->holds ? "the limit is" : "above the limit of",
      std::string_view(threshold.text).substr(threshold.text.find('+')));
}

Verdict VerdictFor(const Threshold& threshold) {
  Verdict verdict;
  verdict.threshold = threshold.text;
  verdict.metric = threshold.metric;
  verdict.check =
      fmt::format("{}-{}", NameOf(threshold.metric), threshold.is_growth ? "growth" : "limit");
  return verdict;
}

Wide MeasureOf(Metric metric, const ModelMeasures& model) {
  if (metric == Metric::kActivations) return model.activations.count();
  if (metric == Metric::kSaved) return model.saved.count();
  if (metric == Metric::kParameters) return model.parameters.count();
  const Wide peak = model.peak.count();
  return metric == Metric::kTotal ? peak + model.constants.count() : peak;
}

}  // namespace

std::string_view NameOf(Metric metric) {
  switch (metric) {
    case Metric::kPeak:
      return "peak";
    case Metric::kArena:
      return "arena";
    case Metric::kTotal:
      return "total";
    case Metric::kNeed:
      return "need";
    case Metric::kOverhead:
      return "overhead";
    case Metric::kTime:
      return "time";
    case Metric::kCurve:
      return "curve";
    case Metric::kActivations:
      return "activations";
    case Metric::kSaved:
      return "saved";
    case Metric::kParameters:
      return "parameters";
    case Metric::kWarnings:
      return "warnings";
  }
  return "";
}

std::string_view LimitOf(const Threshold& threshold) {
  return std::string_view(threshold.text).substr(threshold.text.find('>') + 1);
}

std::vector<Verdict> EvaluateThresholds(const std::vector<Threshold>& thresholds,
                                        const PlanFigures& figures, const OlderPlan& older,
                                        const NeedWithin& need) {
  std::vector<Verdict> verdicts;
  for (const Threshold& threshold : thresholds) {
    Verdict verdict = VerdictFor(threshold);
    if (threshold.metric == Metric::kNeed) {
      EvaluateSize(threshold, need(threshold.memory).count(), &verdict);
    } else if (!threshold.is_growth) {
      EvaluateLimit(threshold, figures, &verdict);
    } else if (older.plan && threshold.metric == Metric::kCurve) {
      ValidateCurve(threshold, figures, older.plan->figures, &verdict);
    } else if (older.plan) {
      ValidateGrowth(threshold, figures, older.plan->figures, &verdict);
    } else {
      CKPLAN_CHECK(!older.absence.empty(),
                   "a growth limit has an older plan or a reason for its absence");
      verdict.message = older.absence;
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::vector<Verdict> EvaluateThresholds(const std::vector<Threshold>& thresholds,
                                        const ModelMeasures& model) {
  std::vector<Verdict> verdicts;
  for (const Threshold& threshold : thresholds) {
    Verdict verdict = VerdictFor(threshold);
    if (threshold.unit == Threshold::Unit::kCount) {
      verdict.holds = model.warnings <= threshold.value;
      verdict.message = fmt::format(
          "{} warning{} {} {} {}", model.warnings, model.warnings == 1 ? "" : "s",
          model.warnings == 1 ? "is" : "are", verdict.holds ? "within" : "above", threshold.value);
    } else if (threshold.metric == Metric::kNeed) {
      EvaluateSize(threshold, model.need(threshold.memory).count(), &verdict);
    } else {
      EvaluateSize(threshold, MeasureOf(threshold.metric, model), &verdict);
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

bool AllHold(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& verdict) { return verdict.holds; });
}

}  // namespace ckplan
