#include "cli/ckplan/thresholds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/common/size_arg.h"
#include "lib/base/hash.h"
#include "lib/emit/human_bytes.h"
#include "lib/emit/json_writer.h"

namespace ckplan {
namespace {

struct MetricName {
  std::string_view name;
  Threshold::Metric metric;
};
constexpr MetricName kMetrics[] = {{"peak", Threshold::Metric::kPeak},
                                   {"arena", Threshold::Metric::kArena},
                                   {"total", Threshold::Metric::kTotal},
                                   {"overhead", Threshold::Metric::kOverhead},
                                   {"time", Threshold::Metric::kTime}};

Error BadThreshold(std::string_view text) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--fail-on \"{}\" cannot be read; write peak>16GiB, arena>16GiB, "
                               "total>16GiB or overhead>5%, or, with --against OLD, peak:+1%, "
                               "arena:+1%, total:+1% or time:+2%",
                               text));
}

// "1.5%"; nothing if it is none.
std::optional<double> ParsePercent(std::string_view text) {
  if (text.empty() || text.back() != '%') return std::nullopt;
  text.remove_suffix(1);
  double percent = 0;
  const auto [end, fault] =
      std::from_chars(text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
  const bool is_whole = fault == std::errc() && end == text.data() + text.size();
  if (!is_whole || percent < 0 || percent > 1e6) return std::nullopt;
  return percent;
}

Bytes BytesOf(Threshold::Metric metric, const PlanFigures& figures) {
  if (metric == Threshold::Metric::kArena) return figures.arena;
  if (metric == Threshold::Metric::kTotal) return figures.peak + TotalConstants(figures);
  return figures.peak;
}

std::string_view NameOf(Threshold::Metric metric) {
  for (const MetricName& row : kMetrics) {
    if (row.metric == metric) return row.name;
  }
  return "";
}

// Ratios are rounded: growth by exactly the limit must pass.
constexpr double kRounding = 1e-9;

double GrowthPercent(double older, double newer) {
  return older == 0 ? (newer == 0 ? 0 : 100) : (newer / older - 1) * 100;
}

std::string JudgeGrowth(const Threshold& threshold, const PlanFigures& figures,
                        const PlanFigures& against) {
  if (threshold.metric == Threshold::Metric::kTime) {
    const double older = 1 + StepOverheadRatio(against);
    const double newer = 1 + StepOverheadRatio(figures);
    const double growth = GrowthPercent(older, newer);
    if (growth <= threshold.most_percent + kRounding) return "";
    return fmt::format("time grew by {:.1f}%, from {:.3f} to {:.3f} of a step that keeps all",
                       growth, older, newer);
  }
  const Bytes older = BytesOf(threshold.metric, against);
  const Bytes newer = BytesOf(threshold.metric, figures);
  const double growth =
      GrowthPercent(static_cast<double>(older.count()), static_cast<double>(newer.count()));
  if (growth <= threshold.most_percent + kRounding) return "";
  return fmt::format("{} grew by {:.1f}%, from {} to {}", NameOf(threshold.metric), growth,
                     HumanBytes(older), HumanBytes(newer));
}

std::string JudgeAbsolute(const Threshold& threshold, const PlanFigures& figures) {
  if (threshold.metric == Threshold::Metric::kOverhead) {
    const double percent = StepOverheadRatio(figures) * 100;
    if (percent <= threshold.most_percent) return "";
    return fmt::format("overhead is {:.1f}% of a training step", percent);
  }
  const Bytes bytes = BytesOf(threshold.metric, figures);
  if (bytes <= threshold.most_bytes) return "";
  return fmt::format("{} is {}, {} bytes", NameOf(threshold.metric), HumanBytes(bytes),
                     bytes.count());
}

// Each character that GitHub reads as its own, spelled out.
std::string GithubEscaped(std::string_view text, bool is_property) {
  std::string escaped;
  for (const char c : text) {
    const bool is_special =
        c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    if (is_special) {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : RepairUtf8(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // XML 1.0 has no other control characters.
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace

Result<Threshold> ParseThreshold(const std::string& text) {
  Threshold threshold;
  threshold.text = text;
  const std::string_view all = text;
  const size_t name_end = std::min(all.find_first_of(">:"), all.size());
  const auto* const known =
      std::find_if(std::begin(kMetrics), std::end(kMetrics),
                   [&](const MetricName& row) { return row.name == all.substr(0, name_end); });
  if (known == std::end(kMetrics) || name_end == all.size()) return BadThreshold(text);
  threshold.metric = known->metric;
  threshold.is_growth = all[name_end] == ':';
  std::string_view value = all.substr(name_end + 1);
  if (threshold.is_growth) {
    if (value.empty() || value[0] != '+') return BadThreshold(text);
    value.remove_prefix(1);
  }
  const bool is_overhead = threshold.metric == Threshold::Metric::kOverhead;
  const bool is_time = threshold.metric == Threshold::Metric::kTime;
  if (threshold.is_growth ? is_overhead : is_time) return BadThreshold(text);
  if (threshold.is_growth || is_overhead) {
    const std::optional<double> percent = ParsePercent(value);
    if (!percent) return BadThreshold(text);
    threshold.most_percent = *percent;
    return threshold;
  }
  const Result<Bytes> bytes = ParseSize(value, "--fail-on");
  if (!bytes.ok()) return BadThreshold(text);
  threshold.most_bytes = *bytes;
  return threshold;
}

CheckedItem Judge(const Threshold& threshold, const PlanFigures& figures,
                  const PlanFigures* against) {
  if (!threshold.is_growth) return {threshold.text, JudgeAbsolute(threshold, figures)};
  CKPLAN_CHECK(against != nullptr, "the command line asks for --against first");
  return {threshold.text, JudgeGrowth(threshold, figures, *against)};
}

std::string GithubAnnotations(const std::vector<CheckedItem>& items, std::string_view path) {
  std::string text;
  for (const CheckedItem& item : items) {
    if (item.message.empty()) continue;
    text += fmt::format("::error file={},title={}::{}\n", GithubEscaped(path, true),
                        GithubEscaped(fmt::format("ckplan {}", item.name), true),
                        GithubEscaped(item.message, false));
  }
  return text;
}

std::string GitlabReport(const std::vector<CheckedItem>& items, std::string_view path,
                         std::string_view model) {
  JsonWriter json;
  json.BeginArray(JsonLayout::kLines);
  for (const CheckedItem& item : items) {
    if (item.message.empty()) continue;
    // A threshold that is moved stays the same finding.
    const size_t end = item.name.find_first_of(">:");
    const std::string check = item.name.substr(0, end == std::string::npos ? end : end + 1);
    json.BeginObject(JsonLayout::kLines);
    json.Key("description").Text(fmt::format("{}: {}", item.name, item.message));
    json.Key("check_name").Text(fmt::format("ckplan/{}", check));
    json.Key("fingerprint").Text(Sha256Hex(fmt::format("{}\n{}\n{}", check, path, model)));
    json.Key("severity").Text("major");
    json.Key("location").BeginObject(JsonLayout::kInline);
    json.Key("path").Text(path);
    json.Key("lines").BeginObject(JsonLayout::kInline);
    json.Key("begin").Integer(1);
    json.End().End().End();
  }
  json.End();
  return std::move(json).Finish();
}

std::string JunitReport(const std::vector<CheckedItem>& items, std::string_view path) {
  const auto failures = std::count_if(
      items.begin(), items.end(), [](const CheckedItem& item) { return !item.message.empty(); });
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += fmt::format("<testsuite name=\"ckplan check\" tests=\"{}\" failures=\"{}\">\n",
                      items.size(), failures);
  for (const CheckedItem& item : items) {
    text += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", XmlEscaped(path),
                        XmlEscaped(item.name));
    text += item.message.empty() ? std::string("/>\n")
                                 : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n",
                                               XmlEscaped(item.message));
  }
  return text + "</testsuite>\n";
}

}  // namespace ckplan
