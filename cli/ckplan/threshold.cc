#include "cli/ckplan/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "cli/common/size_arg.h"
#include "lib/base/human_bytes.h"

namespace ckplan {
namespace {

// Holds sums of a few costs or sizes up to 2^63 times a percentage: 2^66 * 10^9 < 2^127.
using Wide = __int128;

constexpr int64_t kMillion = 1'000'000;

struct MetricForms {
  Metric metric;
  bool has_size;     // metric>SIZE
  bool has_percent;  // metric>P%
  bool has_growth;   // metric:+P%
};
constexpr std::array kMetrics = {
    MetricForms{Metric::kPeak, true, false, true},
    MetricForms{Metric::kArena, true, false, true},
    MetricForms{Metric::kTotal, true, false, true},
    MetricForms{Metric::kOverhead, false, true, false},
    MetricForms{Metric::kTime, false, false, true},
};

std::optional<Bytes> ReadLimit(std::string_view text) {
  const Result<Bytes> size = ParseSize(text, "--fail-on");
  if (!size.ok()) return std::nullopt;
  return *size;
}

std::optional<int64_t> ReadPercent(std::string_view text) {
  const BudgetForms forms{.percent = true, .min = false};
  const Result<Budget> percent = ParseBudget(text, "--fail-on", forms);
  if (!percent.ok() || percent->kind != Budget::Kind::kPercent) return std::nullopt;
  return std::llround(percent->percent * static_cast<double>(kMillion));
}

Wide StepCost(const PlanFigures& figures) {
  return Wide{figures.forward_cost.count()} + figures.backward_cost.count();
}

// True if part / whole is more than the percentage.
bool IsAbove(Wide part, Wide whole, int64_t millionths_percent) {
  return part * 100 * kMillion > whole * millionths_percent;
}

// For the eye alone.
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

// Totals of a file that has not been checked may exceed 2^63.
std::string BytesText(Wide count) {
  const Bytes bytes(static_cast<int64_t>(std::min(count, Wide{Bytes::Max().count()})));
  return fmt::format("{} ({} bytes)", HumanBytes(bytes), bytes.count());
}

void JudgeLimit(const Threshold& threshold, const PlanFigures& figures, Verdict* verdict) {
  const std::string_view limit =
      std::string_view(threshold.text).substr(threshold.text.find('>') + 1);
  if (threshold.metric == Metric::kOverhead) {
    const Wide step = StepCost(figures);
    verdict->holds = !IsAbove(figures.overhead.count(), step, threshold.millionths_percent);
    verdict->message = fmt::format("overhead {} of a training step is {} {}",
                                   PercentOf(figures.overhead.count(), step),
                                   verdict->holds ? "within" : "above", limit);
    return;
  }
  const Wide bytes = BytesOf(threshold.metric, figures);
  verdict->holds = bytes <= threshold.bytes.count();
  verdict->message = fmt::format("{} {} is {} {}", NameOf(threshold.metric), BytesText(bytes),
                                 verdict->holds ? "within" : "above", limit);
  const auto typical = static_cast<int64_t>(std::min(bytes, Wide{Bytes::Max().count()}));
  const std::string hint = BareNumberHint(limit, Bytes(typical), {.percent = false, .min = false});
  if (!hint.empty()) verdict->message += "; " + hint;
}

void JudgeGrowth(const Threshold& threshold, const PlanFigures& figures, const PlanFigures& old,
                 Verdict* verdict) {
  const bool is_time = threshold.metric == Metric::kTime;
  const auto value_of = [&](const PlanFigures& f) {
    return is_time ? StepCost(f) + f.overhead.count() : BytesOf(threshold.metric, f);
  };
  const Wide now = value_of(figures);
  const Wide then = value_of(old);
  verdict->holds = !IsAbove(now - then, then, threshold.millionths_percent);
  const auto text = [&](Wide value) {
    return is_time ? fmt::format("{:.0f}", static_cast<double>(value)) : BytesText(value);
  };
  verdict->message = fmt::format("{} went from {} to {}, {}; {} {}", NameOf(threshold.metric),
                                 text(then), text(now), PercentOf(now - then, then),
                                 verdict->holds ? "allowed is" : "allowed is only",
                                 std::string_view(threshold.text).substr(threshold.text.find('+')));
}

Result<Done> CheckComparable(const Threshold& threshold, const PlanRequest& request,
                             const PlanDigest* old_plan) {
  if (!threshold.is_growth) return Done{};
  if (old_plan == nullptr) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--fail-on \"{}\" needs --against OLD, the plan to grow from", threshold.text));
  }
  const PlanRequest& old = old_plan->request;
  const bool has_same_unit = old.cost_unit == request.cost_unit;
  if (threshold.metric != Metric::kTime) return Done{};
  if (has_same_unit && old.cost_model == request.cost_model) return Done{};
  const auto costs = [&](const PlanRequest& of) {
    return has_same_unit ? fmt::format("\"{}\"", of.cost_model)
                         : fmt::format("\"{}\" in units of {}", of.cost_model, of.cost_unit);
  };
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("--fail-on \"{}\": times do not compare: the plan's costs are by {}, "
                  "those of --against by {}; plan both with one --cost",
                  threshold.text, costs(request), costs(old)));
}

std::optional<Threshold> ReadThreshold(const std::string& text) {
  const size_t sign = text.find_first_of(">:");
  if (sign == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(sign + 1);
  Threshold threshold;
  threshold.text = text;
  threshold.is_growth = text[sign] == ':';
  if (threshold.is_growth && !rest.starts_with('+')) return std::nullopt;
  for (const MetricForms& forms : kMetrics) {
    if (NameOf(forms.metric) != std::string_view(text).substr(0, sign)) continue;
    threshold.metric = forms.metric;
    const bool wants_percent = threshold.is_growth ? forms.has_growth : forms.has_percent;
    if (wants_percent) {
      const auto percent = ReadPercent(rest.substr(threshold.is_growth ? 1 : 0));
      if (!percent) return std::nullopt;
      threshold.millionths_percent = *percent;
      return threshold;
    }
    const auto limit = ReadLimit(rest);
    if (threshold.is_growth || !forms.has_size || !limit) return std::nullopt;
    threshold.bytes = *limit;
    return threshold;
  }
  return std::nullopt;
}

// The limit that was probably meant; empty if it cannot be told.
std::string Meant(const std::string& text) {
  const size_t sign = text.find_first_of(">:");
  if (sign == std::string::npos) return "";
  const std::string metric = text.substr(0, sign + 1);
  size_t begin = sign + 1;
  if (begin < text.size() && (text[begin] == '=' || text[begin] == '+')) ++begin;
  const std::string number = text.substr(begin);
  const std::string share = MeantBudget(number, {.percent = true, .min = false});
  const std::string size = MeantBudget(number, {.percent = false, .min = false});
  for (const std::string& guess :
       {metric + number, metric + "+" + number, metric + share, metric + "+" + share,
        metric + number + "%", metric + "+" + number + "%", metric + size}) {
    if (ReadThreshold(guess)) return guess;
  }
  return "";
}

Error BadThreshold(const std::string& text) {
  constexpr size_t kLongestEcho = 80;
  const std::string meant = text.size() > kLongestEcho ? "" : Meant(text);
  const std::string_view forms =
      "write peak>16GiB, arena>16GiB, total>16GiB or overhead>5%, or, with --against OLD, "
      "peak:+1%, "
      "arena:+1%, total:+1% or time:+2%";
  return MakeError(
      ErrorCode::kUsage,
      meant.empty()
          ? fmt::format("--fail-on \"{}\" cannot be read; {}", text.substr(0, kLongestEcho), forms)
          : fmt::format("--fail-on \"{}\" cannot be read; did you mean \"{}\"?", text, meant));
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
    case Metric::kOverhead:
      return "overhead";
    case Metric::kTime:
      return "time";
  }
  return "";
}

Result<Threshold> ParseThreshold(const std::string& text) {
  if (auto threshold = ReadThreshold(text)) return std::move(*threshold);
  return BadThreshold(text);
}

Result<std::vector<Verdict>> JudgeThresholds(const std::vector<Threshold>& thresholds,
                                             const PlanFigures& figures, const PlanRequest& request,
                                             const PlanDigest* old_plan) {
  std::vector<Verdict> verdicts;
  for (const Threshold& threshold : thresholds) {
    CKPLAN_RETURN_IF_ERROR(CheckComparable(threshold, request, old_plan));
    Verdict verdict;
    verdict.threshold = threshold.text;
    verdict.metric = threshold.metric;
    verdict.check =
        fmt::format("{}-{}", NameOf(threshold.metric), threshold.is_growth ? "growth" : "limit");
    if (threshold.is_growth) {
      JudgeGrowth(threshold, figures, old_plan->figures, &verdict);
    } else {
      JudgeLimit(threshold, figures, &verdict);
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace ckplan
