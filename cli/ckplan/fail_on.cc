#include "cli/ckplan/fail_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "cli/common/request_values.h"
#include "cli/common/size_arg.h"

namespace ckplan {
namespace {

constexpr int64_t kMillion = 1'000'000;

// The forms in which a limit on each measure may be written.
struct MetricForms {
  Metric metric;
  // Limits on a plan:
  bool has_size = false;            // metric>SIZE
  bool has_percent = false;         // metric>P%
  bool has_growth = false;          // metric:+P%
  bool has_growth_by_size = false;  // metric:+SIZE
  // Limits on a model:
  bool has_model_size = false;   // metric>SIZE
  bool has_model_count = false;  // metric>N
};
constexpr std::array kMetrics = {
    MetricForms{.metric = Metric::kPeak,
                .has_size = true,
                .has_percent = true,
                .has_growth = true,
                .has_growth_by_size = true,
                .has_model_size = true},
    MetricForms{
        .metric = Metric::kArena, .has_size = true, .has_growth = true, .has_growth_by_size = true},
    MetricForms{.metric = Metric::kTotal,
                .has_size = true,
                .has_growth = true,
                .has_growth_by_size = true,
                .has_model_size = true},
    MetricForms{.metric = Metric::kNeed, .has_size = true, .has_model_size = true},
    MetricForms{.metric = Metric::kOverhead, .has_percent = true},
    MetricForms{.metric = Metric::kTime, .has_growth = true},
    MetricForms{.metric = Metric::kCurve, .has_growth = true},
    MetricForms{.metric = Metric::kActivations, .has_model_size = true},
    MetricForms{.metric = Metric::kSaved, .has_model_size = true},
    MetricForms{.metric = Metric::kParameters, .has_model_size = true},
    MetricForms{.metric = Metric::kWarnings, .has_model_count = true},
};

std::optional<int64_t> ReadLimit(std::string_view text) {
  const Result<Bytes> size = ParseSize(text, "--fail-on");
  if (!size.ok()) return std::nullopt;
  return size->count();
}

// Refuses a bare number, which may as well be meant in percent.
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

Result<Done> CheckHasCurve(const Threshold& threshold, const PlanFigures& figures,
                           std::string_view whose) {
  if (!figures.curve.empty()) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--fail-on \"{}\": {} has no curve; plan by best without a budget",
                               threshold.text, whose));
}

Result<Done> CheckComparable(const Threshold& threshold, const PlanFigures& figures,
                             const PlanRequest& request, const OlderPlan& older) {
  if (!threshold.is_growth || !older.absence.empty()) return Done{};
  if (!older.plan) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--fail-on \"{}\" needs --against OLD, the plan to grow from", threshold.text));
  }
  const PlanRequest& old = older.plan->request;
  const bool has_same_unit = old.cost_unit == request.cost_unit;
  if (threshold.metric == Metric::kCurve) {
    CKPLAN_RETURN_IF_ERROR(CheckHasCurve(threshold, figures, "the plan"));
    CKPLAN_RETURN_IF_ERROR(CheckHasCurve(threshold, older.plan->figures, "the plan of --against"));
  } else if (threshold.metric != Metric::kTime) {
    return Done{};
  }
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

// Reads what follows ">" or ":+".
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

// A limit on the need is the memory of a device, which may be named.
std::optional<Threshold> ReadNeed(const std::string& text, const std::string& memory) {
  const Result<Budget> read = ReadMemory({"--fail-on", ""}, memory);
  if (!read.ok()) return std::nullopt;
  Threshold threshold{text, Metric::kNeed, false, Threshold::Unit::kBytes, read->bytes.count()};
  threshold.memory = *read;
  return threshold;
}

std::optional<Threshold> ReadThreshold(const std::string& text, LimitSubject subject) {
  const size_t sign = text.find_first_of(">:");
  if (sign == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(sign + 1);
  const bool is_growth = text[sign] == ':';
  if (is_growth && !rest.starts_with('+')) return std::nullopt;
  for (const MetricForms& forms : kMetrics) {
    if (NameOf(forms.metric) != std::string_view(text).substr(0, sign)) continue;
    if (forms.metric == Metric::kNeed) {
      if (is_growth) return std::nullopt;
      return ReadNeed(text, std::string(rest));
    }
    const auto read = ReadValueOf(forms, is_growth, subject, rest.substr(is_growth ? 1 : 0));
    if (!read) return std::nullopt;
    return Threshold{text, forms.metric, is_growth, read->unit, *read->value};
  }
  return std::nullopt;
}

// The limit that was probably meant; empty if that is not clear.
std::string Meant(const std::string& text, LimitSubject subject) {
  const size_t sign = text.find_first_of(">:");
  if (sign == std::string::npos) return "";
  const std::string metric = text.substr(0, sign + 1);
  size_t begin = sign + 1;
  if (begin < text.size() && (text[begin] == '=' || text[begin] == '+')) ++begin;
  const std::string number = text.substr(begin);
  const std::string share = SuggestedBudget(number, {.percent = true, .min = false});
  const std::string size = SuggestedBudget(number, {.percent = false, .min = false});
  for (const std::string& guess :
       {metric + number, metric + "+" + number, metric + number + "%", metric + "+" + number + "%",
        metric + share, metric + "+" + share, metric + size}) {
    if (ReadThreshold(guess, subject)) return guess;
  }
  return "";
}

constexpr std::string_view kPlanForms =
    "write peak>16GiB, peak>60%, arena>16GiB, total>16GiB, need>24GiB or overhead>5%, or, with "
    "--against OLD, "
    "peak:+1%, "
    "peak:+10MiB, arena:+1%, total:+1%, time:+2% or curve:+1%";
constexpr std::string_view kModelForms =
    "write peak>16GiB, total>16GiB, need>24GiB, activations>8GiB, saved>8GiB, parameters>2GiB or "
    "warnings>0";

Error BadThreshold(const std::string& text, LimitSubject subject) {
  constexpr size_t kLongestEcho = 80;
  const std::string hint = text.size() > kLongestEcho ? "" : Meant(text, subject);
  return MakeError(
      ErrorCode::kUsage,
      hint.empty()
          ? fmt::format("--fail-on \"{}\" cannot be read; {}", text.substr(0, kLongestEcho),
                        subject == LimitSubject::kPlan ? kPlanForms : kModelForms)
          : fmt::format("--fail-on \"{}\" cannot be read; did you mean \"{}\"?", text, hint));
}

// A limit in bytes that is a bare number was perhaps meant in another unit.
void AddHints(const std::vector<Threshold>& thresholds, std::vector<Verdict>* verdicts) {
  for (size_t i = 0; i < thresholds.size(); ++i) {
    const Threshold& threshold = thresholds[i];
    if (threshold.is_growth || threshold.unit != Threshold::Unit::kBytes) continue;
    Verdict& verdict = (*verdicts)[i];
    const std::string hint =
        BareNumberHint(LimitOf(threshold), verdict.measured, {.percent = false, .min = false});
    if (!hint.empty()) verdict.message += "; " + hint;
  }
}

}  // namespace

Result<std::vector<Threshold>> ThresholdsIn(const Options& options, LimitSubject subject) {
  std::vector<Threshold> thresholds;
  for (const std::string& text : options.fail_on) {
    CKPLAN_ASSIGN_OR_RETURN(Threshold threshold, ParseThreshold(text, subject));
    thresholds.push_back(std::move(threshold));
  }
  if (options.max_peak) {
    // Says in terms of its own flag what is wrong with the size.
    CKPLAN_RETURN_IF_ERROR(ParseSize(*options.max_peak, "--max-peak"));
    CKPLAN_ASSIGN_OR_RETURN(Threshold peak, ParseThreshold("peak>" + *options.max_peak, subject));
    thresholds.push_back(std::move(peak));
  }
  if (const auto memory = options.request.ValueOf("memory")) {
    CKPLAN_RETURN_IF_ERROR(options.request.Read());
    CKPLAN_ASSIGN_OR_RETURN(Threshold need, ParseThreshold("need>" + *memory, subject));
    thresholds.push_back(std::move(need));
  }
  return thresholds;
}

Result<Threshold> ParseThreshold(const std::string& text, LimitSubject subject) {
  if (auto threshold = ReadThreshold(text, subject)) return std::move(*threshold);
  return BadThreshold(text, subject);
}

void WarnOfUnknownState(const std::vector<Threshold>& thresholds, const Source& source,
                        const Screen& screen) {
  const bool counts_state =
      std::any_of(thresholds.begin(), thresholds.end(), [](const Threshold& threshold) {
        return threshold.metric == Metric::kTotal || threshold.metric == Metric::kNeed;
      });
  const std::optional<Error> unknown = UnknownState(source, source.request.optimizer);
  if (counts_state && unknown) screen.Warn(unknown->message + std::string(kCountsAsNothing));
}

Result<std::vector<Verdict>> EvaluateFailOn(const std::vector<Threshold>& thresholds,
                                            const PlanFigures& figures, const PlanRequest& request,
                                            const OlderPlan& older, const NeedWithin& need) {
  for (const Threshold& threshold : thresholds) {
    CKPLAN_RETURN_IF_ERROR(CheckComparable(threshold, figures, request, older));
  }
  std::vector<Verdict> verdicts = EvaluateThresholds(thresholds, figures, older, need);
  AddHints(thresholds, &verdicts);
  return verdicts;
}

std::vector<Verdict> EvaluateFailOn(const std::vector<Threshold>& thresholds,
                                    const ModelMeasures& model) {
  std::vector<Verdict> verdicts = EvaluateThresholds(thresholds, model);
  AddHints(thresholds, &verdicts);
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

void PrintFailures(const std::string& path, const std::vector<Verdict>& verdicts,
                   bool is_reported) {
  std::vector<std::string> failures;
  for (const Verdict& verdict : verdicts) {
    if (verdict.holds) continue;
    failures.push_back(fmt::format("{}: {}", verdict.threshold, verdict.message));
  }
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{} violates {} of {} limit{}", path, failures.size(),
                                      verdicts.size(), verdicts.size() == 1 ? "" : "s"));
  constexpr size_t kShown = 10;
  if (failures.size() > kShown) failures.resize(kShown);
  if (!is_reported) error.notes = std::move(failures);
  PrintError(error, "ckplan", ExitCode::kDifferent);
}

}  // namespace ckplan
