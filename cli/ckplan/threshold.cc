#include "cli/ckplan/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "cli/common/size_arg.h"
#include "cli/common/terminal.h"
#include "lib/base/human_bytes.h"

namespace ckplan {
namespace {

// Holds sums of a few costs or sizes up to 2^63, multiplied by a percentage: 2^66 * 10^9 < 2^127.
using Wide = __int128;

constexpr int64_t kMillion = 1'000'000;

struct MetricForms {
  Metric metric;
  std::string_view name;
  // The forms of limits on a plan.
  bool has_size = false;            // metric>SIZE
  bool has_percent = false;         // metric>P%
  bool has_growth = false;          // metric:+P%
  bool has_growth_by_size = false;  // metric:+SIZE
  // The forms of limits on a model.
  bool has_model_size = false;   // metric>SIZE
  bool has_model_count = false;  // metric>N
};
constexpr std::array kMetrics = {
    MetricForms{.metric = Metric::kPeak,
                .name = "peak",
                .has_size = true,
                .has_percent = true,
                .has_growth = true,
                .has_growth_by_size = true,
                .has_model_size = true},
    MetricForms{.metric = Metric::kArena,
                .name = "arena",
                .has_size = true,
                .has_growth = true,
                .has_growth_by_size = true},
    MetricForms{.metric = Metric::kTotal,
                .name = "total",
                .has_size = true,
                .has_growth = true,
                .has_growth_by_size = true,
                .has_model_size = true},
    MetricForms{.metric = Metric::kOverhead, .name = "overhead", .has_percent = true},
    MetricForms{.metric = Metric::kTime, .name = "time", .has_growth = true},
    MetricForms{.metric = Metric::kActivations, .name = "activations", .has_model_size = true},
    MetricForms{.metric = Metric::kSaved, .name = "saved", .has_model_size = true},
    MetricForms{.metric = Metric::kParameters, .name = "parameters", .has_model_size = true},
    MetricForms{.metric = Metric::kWarnings, .name = "warnings", .has_model_count = true},
};

std::optional<int64_t> ReadLimit(std::string_view text) {
  const Result<Bytes> size = ParseSize(text, "--fail-on");
  if (!size.ok()) return std::nullopt;
  return size->count();
}

// A bare number is not a size, because it may be meant as a percentage.
std::optional<int64_t> ReadGrowthBySize(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") == text.npos) return std::nullopt;
  return ReadLimit(text);
}

std::optional<int64_t> ReadPercent(std::string_view text) {
  const BudgetForms forms{.percent = true, .min = false};
  const Result<Budget> percent = ParseBudget(text, "--fail-on", forms);
  if (!percent.ok() || percent->kind != Budget::Kind::kPercent) return std::nullopt;
  return std::llround(percent->percent * static_cast<double>(kMillion));
}

std::optional<int64_t> ReadCount(std::string_view text) {
  const Result<int64_t> count =
      ParseInteger(text, "--fail-on", 0, std::numeric_limits<int32_t>::max());
  if (!count.ok()) return std::nullopt;
  return *count;
}

Wide StepCost(const PlanFigures& figures) {
  return Wide{figures.forward_cost.count()} + figures.backward_cost.count();
}

// True if part / whole is more than the percentage.
bool IsAbove(Wide part, Wide whole, int64_t millionths_percent) {
  return part * 100 * kMillion > whole * millionths_percent;
}

// For display only.
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

// Totals of an unchecked file may exceed 2^63.
std::string BytesText(Wide count) {
  const Bytes bytes(static_cast<int64_t>(std::min(count, Wide{Bytes::Max().count()})));
  return fmt::format("{} ({} bytes)", HumanBytes(bytes), bytes.count());
}

std::string_view LimitOf(const Threshold& threshold) {
  return std::string_view(threshold.text).substr(threshold.text.find('>') + 1);
}

void JudgeSize(const Threshold& threshold, Wide bytes, Verdict* verdict) {
  const std::string_view limit = LimitOf(threshold);
  verdict->holds = bytes <= threshold.value;
  verdict->message = fmt::format("{} {} is {} {}", NameOf(threshold.metric), BytesText(bytes),
                                 verdict->holds ? "within" : "above", limit);
  const auto typical = static_cast<int64_t>(std::min(bytes, Wide{Bytes::Max().count()}));
  const std::string hint = BareNumberHint(limit, Bytes(typical), {.percent = false, .min = false});
  if (!hint.empty()) verdict->message += "; " + hint;
}

void JudgeShareOfKeepAll(const Threshold& threshold, const PlanFigures& figures, Verdict* verdict) {
  const Wide keep_all = figures.baseline_peak.count();
  verdict->holds = !IsAbove(figures.peak.count(), keep_all, threshold.value);
  verdict->message =
      fmt::format("peak {} is {} {} of keep-all's {}", BytesText(figures.peak.count()),
                  verdict->holds ? "within" : "above", LimitOf(threshold), BytesText(keep_all));
}

void JudgeLimit(const Threshold& threshold, const PlanFigures& figures, Verdict* verdict) {
  if (threshold.unit == Threshold::Unit::kBytes) {
    JudgeSize(threshold, BytesOf(threshold.metric, figures), verdict);
    return;
  }
  if (threshold.metric == Metric::kPeak) {
    JudgeShareOfKeepAll(threshold, figures, verdict);
    return;
  }
  const Wide step = StepCost(figures);
  verdict->holds = !IsAbove(figures.overhead.count(), step, threshold.value);
  verdict->message = fmt::format("overhead {} of a training step is {} {}",
                                 PercentOf(figures.overhead.count(), step),
                                 verdict->holds ? "within" : "above", LimitOf(threshold));
}

// The growth: "+50.00%" or, for a limit in bytes, "+7.81 KiB (8000 bytes)".
std::string GrowthText(Wide growth, Wide then, Threshold::Unit unit) {
  if (unit == Threshold::Unit::kPercent) return PercentOf(growth, then);
  return fmt::format("{}{}", growth < 0 ? "-" : "+", BytesText(growth < 0 ? -growth : growth));
}

void JudgeGrowth(const Threshold& threshold, const PlanFigures& figures, const PlanFigures& old,
                 Verdict* verdict) {
  const bool is_time = threshold.metric == Metric::kTime;
  const auto value_of = [&](const PlanFigures& f) {
    return is_time ? StepCost(f) + f.overhead.count() : BytesOf(threshold.metric, f);
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
                  verdict->holds ? "allowed is" : "allowed is only",
                  std::string_view(threshold.text).substr(threshold.text.find('+')));
}

Result<Done> CheckComparable(const Threshold& threshold, const PlanRequest& request,
                             const OlderPlan& older) {
  if (!threshold.is_growth || !older.absence.empty()) return Done{};
  if (!older.plan) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--fail-on \"{}\" needs --against OLD, the plan to grow from", threshold.text));
  }
  const PlanRequest& old = older.plan->request;
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

struct ReadValue {
  Threshold::Unit unit;
  std::optional<int64_t> value;
};

// Parses what follows ">" or ":+".
std::optional<ReadValue> ReadValueOf(const MetricForms& forms, bool is_growth, LimitSubject subject,
                                     std::string_view text) {
  using Unit = Threshold::Unit;
  const bool is_plan = subject == LimitSubject::kPlan;
  const ReadValue readings[] = {
      {Unit::kPercent, is_plan && (is_growth ? forms.has_growth : forms.has_percent)
                           ? ReadPercent(text)
                           : std::nullopt},
      {Unit::kBytes,
       is_plan && is_growth && forms.has_growth_by_size ? ReadGrowthBySize(text) : std::nullopt},
      {Unit::kBytes, !is_growth && (is_plan ? forms.has_size : forms.has_model_size)
                         ? ReadLimit(text)
                         : std::nullopt},
      {Unit::kCount,
       !is_plan && !is_growth && forms.has_model_count ? ReadCount(text) : std::nullopt},
  };
  for (const ReadValue& reading : readings) {
    if (reading.value) return reading;
  }
  return std::nullopt;
}

std::optional<Threshold> ReadThreshold(const std::string& text, LimitSubject subject) {
  const size_t sign = text.find_first_of(">:");
  if (sign == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(sign + 1);
  const bool is_growth = text[sign] == ':';
  if (is_growth && !rest.starts_with('+')) return std::nullopt;
  for (const MetricForms& forms : kMetrics) {
    if (forms.name != std::string_view(text).substr(0, sign)) continue;
    const auto read = ReadValueOf(forms, is_growth, subject, rest.substr(is_growth ? 1 : 0));
    if (!read) return std::nullopt;
    return Threshold{text, forms.metric, is_growth, read->unit, *read->value};
  }
  return std::nullopt;
}

// The limit that was probably meant; empty if there is no guess.
std::string Meant(const std::string& text, LimitSubject subject) {
  const size_t sign = text.find_first_of(">:");
  if (sign == std::string::npos) return "";
  const std::string metric = text.substr(0, sign + 1);
  size_t begin = sign + 1;
  if (begin < text.size() && (text[begin] == '=' || text[begin] == '+')) ++begin;
  const std::string number = text.substr(begin);
  const std::string share = MeantBudget(number, {.percent = true, .min = false});
  const std::string size = MeantBudget(number, {.percent = false, .min = false});
  for (const std::string& guess :
       {metric + number, metric + "+" + number, metric + number + "%", metric + "+" + number + "%",
        metric + share, metric + "+" + share, metric + size}) {
    if (ReadThreshold(guess, subject)) return guess;
  }
  return "";
}

constexpr std::string_view kPlanForms =
    "write peak>16GiB, peak>60%, arena>16GiB, total>16GiB or overhead>5%, or, with --against OLD, "
    "peak:+1%, "
    "peak:+10MiB, arena:+1%, total:+1% or time:+2%";
constexpr std::string_view kModelForms =
    "write peak>16GiB, total>16GiB, activations>8GiB, saved>8GiB, parameters>2GiB or warnings>0";

Error BadThreshold(const std::string& text, LimitSubject subject) {
  constexpr size_t kLongestEcho = 80;
  const std::string meant = text.size() > kLongestEcho ? "" : Meant(text, subject);
  return MakeError(
      ErrorCode::kUsage,
      meant.empty()
          ? fmt::format("--fail-on \"{}\" cannot be read; {}", text.substr(0, kLongestEcho),
                        subject == LimitSubject::kPlan ? kPlanForms : kModelForms)
          : fmt::format("--fail-on \"{}\" cannot be read; did you mean \"{}\"?", text, meant));
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
  for (const MetricForms& forms : kMetrics) {
    if (forms.metric == metric) return forms.name;
  }
  return "";
}

Result<Threshold> ParseThreshold(const std::string& text, LimitSubject subject) {
  if (auto threshold = ReadThreshold(text, subject)) return std::move(*threshold);
  return BadThreshold(text, subject);
}

Result<std::vector<Verdict>> JudgeThresholds(const std::vector<Threshold>& thresholds,
                                             const PlanFigures& figures, const PlanRequest& request,
                                             const OlderPlan& older) {
  std::vector<Verdict> verdicts;
  for (const Threshold& threshold : thresholds) {
    CKPLAN_RETURN_IF_ERROR(CheckComparable(threshold, request, older));
    Verdict verdict = VerdictFor(threshold);
    if (!threshold.is_growth) {
      JudgeLimit(threshold, figures, &verdict);
    } else if (older.plan) {
      JudgeGrowth(threshold, figures, older.plan->figures, &verdict);
    } else {
      verdict.message = older.absence;
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::vector<Verdict> JudgeThresholds(const std::vector<Threshold>& thresholds,
                                     const ModelMeasures& model) {
  std::vector<Verdict> verdicts;
  for (const Threshold& threshold : thresholds) {
    Verdict verdict = VerdictFor(threshold);
    if (threshold.unit == Threshold::Unit::kCount) {
      verdict.holds = model.warnings <= threshold.value;
      verdict.message = fmt::format(
          "{} warning{} {} {} {}", model.warnings, model.warnings == 1 ? "" : "s",
          model.warnings == 1 ? "is" : "are", verdict.holds ? "within" : "above", threshold.value);
    } else {
      JudgeSize(threshold, MeasureOf(threshold.metric, model), &verdict);
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::string VerdictLines(const std::vector<Verdict>& verdicts, const std::string& label,
                         const Terminal& terminal) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    const std::string line =
        fmt::format("{} {}{}{}   {}", verdict.holds ? "ok  " : "FAIL", label,
                    label.empty() ? "" : "   ", verdict.threshold, verdict.message);
    text += verdict.holds ? line : Styled(line, TextStyle::kWarning, terminal);
    text += '\n';
  }
  return text;
}

void WriteVerdict(const Verdict& verdict, JsonWriter* json) {
  json->BeginObject(JsonLayout::kInline);
  json->Key("limit").Text(verdict.threshold);
  json->Key("ok").Boolean(verdict.holds);
  json->Key("why").Text(verdict.message);
  json->End();
}

bool AllHold(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& verdict) { return verdict.holds; });
}

void PrintFailures(const std::string& path, const std::vector<Verdict>& verdicts,
                   bool is_reported) {
  std::vector<std::string> failures;
  for (const Verdict& verdict : verdicts) {
    if (verdict.holds) continue;
    failures.push_back(fmt::format("{}: {}", verdict.threshold, verdict.message));
  }
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{} fails {} of {} limit{}", path, failures.size(),
                                      verdicts.size(), verdicts.size() == 1 ? "" : "s"));
  constexpr size_t kShown = 10;
  if (failures.size() > kShown) failures.resize(kShown);
  if (!is_reported) error.notes = std::move(failures);
  PrintError(error, "ckplan", ExitCode::kDifferent);
}

}  // namespace ckplan
