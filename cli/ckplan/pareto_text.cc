#include "cli/ckplan/pareto_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"
#include "lib/files/emit/pareto_svg.h"

namespace ckplan {
namespace {

using AllSeries = std::vector<ParetoSeries>;

constexpr std::string_view kMarks = "o+x*#@%&";
constexpr size_t kChartRows = 12;
constexpr size_t kWidestChart = 72;
constexpr size_t kScaleWidth = 8;  // "+100.0% "

double ShareOf(const ParetoCurve& curve, const CurvePoint& point) {
  if (curve.step <= Cost(0)) return 0;
  return static_cast<double>(point.overhead.count()) / static_cast<double>(curve.step.count());
}

double ChangeOf(const ParetoSeries& series, const CurvePoint& point) {
  if (series.baseline_peak <= Bytes(0)) return 0;
  return static_cast<double>((point.peak - series.baseline_peak).count()) /
         static_cast<double>(series.baseline_peak.count());
}

// Names of the dimensions that at least one series binds.
std::vector<std::string> DimsOf(const AllSeries& all) {
  std::set<std::string> names;
  for (const ParetoSeries& series : all) {
    for (const auto& [name, size] : series.request.dims) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::string SizeOf(const ParetoSeries& series, const std::string& dim) {
  const auto found = series.request.dims.find(dim);
  return found == series.request.dims.end() ? "" : std::to_string(found->second);
}

// The properties in which the series differ: "best, N=64, adam".
class Labels {
 public:
  explicit Labels(const AllSeries& all) {
    std::set<std::string_view> optimizers;
    for (const ParetoSeries& series : all) {
      optimizers.insert(NameOf(series.request.optimizer));
      for (const auto& [name, size] : series.request.dims) sizes_[name].insert(size);
    }
    has_optimizers_ = optimizers.size() > 1;
  }

  std::string Of(const ParetoSeries& series) const {
    std::string text = series.request.algorithm;
    for (const auto& [name, sizes] : sizes_) {
      if (sizes.size() > 1) text += fmt::format(", {}={}", name, SizeOf(series, name));
    }
    if (has_optimizers_) text += fmt::format(", {}", NameOf(series.request.optimizer));
    return Printable(text, kLongestName);
  }

 private:
  std::map<std::string, std::set<int64_t>> sizes_;
  bool has_optimizers_ = false;
};

// Marks on a grid of characters: peaks from left to right, added time from bottom to top.
class Chart {
 public:
  Chart(const AllSeries& all, size_t columns) : columns_(columns) {
    for (const ParetoSeries& series : all) {
      most_bytes_ = std::max(most_bytes_, NeedAt(series, series.baseline_peak));
      for (const CurvePoint& point : PointsOf(series)) {
        most_bytes_ = std::max(most_bytes_, NeedAt(series, point.peak));
        most_share_ = std::max(most_share_, ShareOf(*series.curve, point));
      }
    }
    rows_.assign(kChartRows, std::string(columns_, ' '));
    for (size_t i = 0; i < all.size(); ++i) {
      for (const CurvePoint& point : PointsOf(all[i])) {
        Put(NeedAt(all[i], point.peak), ShareOf(*all[i].curve, point), kMarks[i % kMarks.size()]);
      }
    }
  }

  std::string Text() const {
    std::string text;
    for (size_t row = 0; row < kChartRows; ++row) {
      const double share =
          most_share_ * static_cast<double>(kChartRows - 1 - row) / (kChartRows - 1);
      const bool has_scale = row % 4 == 0 || row + 1 == kChartRows;
      std::string line = fmt::format("{:>{}}|{}", has_scale ? SignedPercent(share) + " " : "",
                                     kScaleWidth, rows_[row]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
    const std::string most = HumanBytes(Bytes(most_bytes_));
    text += std::string(kScaleWidth, ' ') + '+' + std::string(columns_, '-') + '\n';
    return text + fmt::format("{}0{:>{}}\n", std::string(kScaleWidth + 1, ' '), most, columns_ - 1);
  }

  static const std::vector<CurvePoint>& PointsOf(const ParetoSeries& series) {
    static const std::vector<CurvePoint> kNone;
    return series.curve ? series.curve->points : kNone;
  }

 private:
  // Includes the constants, so that curves of several sizes and optimizers can be compared.
  static int64_t NeedAt(const ParetoSeries& series, Bytes peak) {
    return (peak + series.constants).count();
  }

  // The first mark in a cell stays.
  void Put(int64_t bytes, double share, char mark) {
    const auto at = [](double part, size_t count) {
      return static_cast<size_t>(std::lround(part * static_cast<double>(count - 1)));
    };
    const size_t column =
        at(static_cast<double>(bytes) / static_cast<double>(most_bytes_), columns_);
    const size_t row = kChartRows - 1 - at(std::max(share, 0.0) / most_share_, kChartRows);
    char& cell = rows_[row][column];
    if (cell == ' ') cell = mark;
  }

  size_t columns_;
  int64_t most_bytes_ = 1;
  double most_share_ = 0.01;  // Above 0, so that a curve without added time has a scale.
  std::vector<std::string> rows_;
};

// The series that are distinguished by the properties shown first.
std::string Legend(const AllSeries& all, const Labels& labels) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("  {} {}\n", kMarks[i % kMarks.size()], labels.Of(all[i]));
  }
  return text;
}

// All series are of one command, so they have the same link.
bool HasLink(const AllSeries& all) { return all.front().request.offload.has_value(); }

// With --memory, what training with a point's plan needs; otherwise the point's peak with the
// constants.
Bytes NeedOf(const ParetoSeries& series, size_t at) {
  const ParetoCurve& curve = *series.curve;
  return series.request.memory.is_given() ? curve.accountings[at].need()
                                          : curve.points[at].peak + series.constants;
}

TextTable TableOf(const AllSeries& all, const Labels& labels, const ByteUnit& unit) {
  TextTable table;
  table.columns = {{"algorithm", false, TableColumn::Fit::kElide},
                   {"peak", true},
                   {"change", true, TableColumn::Fit::kWhole, 2},
                   {"with constants", true, TableColumn::Fit::kWhole, 1},
                   {"time", true}};
  const bool has_link = HasLink(all);
  const bool has_memory = all.front().request.memory.is_given();
  if (has_memory) table.columns.push_back({"need", true});
  if (has_link) table.columns.push_back({"on host", true});
  for (const ParetoSeries& series : all) {
    std::string label = labels.Of(series);
    const std::vector<CurvePoint>& points = Chart::PointsOf(series);
    for (size_t i = 0; i < points.size(); ++i) {
      table.rows.push_back({label, AmountIn(unit, points[i].peak),
                            SignedPercent(ChangeOf(series, points[i])),
                            AmountIn(unit, points[i].peak + series.constants),
                            SignedPercent(ShareOf(*series.curve, points[i]))});
      if (has_memory) table.rows.back().push_back(AmountIn(unit, NeedOf(series, i)));
      if (has_link) table.rows.back().push_back(AmountIn(unit, series.curve->host_peaks[i]));
    }
  }
  return table;
}

Bytes LargestPeak(const AllSeries& all) {
  Bytes largest;
  for (const ParetoSeries& series : all) largest = std::max(largest, series.baseline_peak);
  return largest;
}

void WriteSubject(const ParetoSeries& series, JsonWriter* json) {
  json->Key("model").Text(series.model.name);
  json->Key("dims").BeginObject(JsonLayout::kInline);
  for (const auto& [name, size] : series.request.dims) json->Key(name).Integer(size);
  json->End();
  WriteTableFields(FieldScope::InTables::kPatterns, series.request, json);
  WriteField("algorithm", series.request, json);
  WriteField("optimizer", series.request, json);
  WriteTableFields(FieldScope::InTables::kCounting, series.request, json);
}

constexpr size_t kNoPoint = static_cast<size_t>(-1);

// `at` is the number of a point of the curve, or kNoPoint for a series without points.
void WriteRow(const ParetoSeries& series, size_t at, JsonWriter* json) {
  json->BeginObject(JsonLayout::kInline);
  WriteSubject(series, json);
  json->Key("baseline_peak_bytes").Amount(series.baseline_peak);
  json->Key("constant_bytes").Amount(series.constants);
  if (at == kNoPoint) {
    json->Key("failure").Text(series.failure).End();
    return;
  }
  const CurvePoint& point = series.curve->points[at];
  json->Key("budget_bytes").Amount(point.peak);
  json->Key("peak_bytes").Amount(point.peak);
  json->Key("need_bytes").Amount(NeedOf(series, at));
  if (series.request.offload) json->Key("host_peak_bytes").Amount(series.curve->host_peaks[at]);
  json->Key("overhead_cost").Amount(point.overhead);
  json->Key("step_cost").Amount(series.curve->step);
  json->Key("added_percent").Decimal(100 * ShareOf(*series.curve, point), 4);
  json->Key("failure").Null();
  if (series.request.memory.is_given()) {
    json->Key("accounting");
    WriteAccounting(series.curve->accountings[at], series.request.memory, JsonLayout::kInline,
                    json);
  }
  json->End();
}

}  // namespace

std::string ParetoText(const AllSeries& all, const Terminal& terminal) {
  const ParetoSeries& first = all.front();
  const Labels labels(all);
  const size_t room = static_cast<size_t>(std::max(terminal.width, 40)) - kScaleWidth - 2;
  std::string text =
      fmt::format("ckplan {}   {}", CKPLAN_VERSION, Printable(first.model.name, kLongestName));
  for (const std::string& dim : DimsOf(all)) {
    const bool is_one = std::all_of(all.begin(), all.end(), [&](const ParetoSeries& series) {
      return SizeOf(series, dim) == SizeOf(first, dim);
    });
    if (is_one) text += fmt::format("   {}={}", Printable(dim, kLongestName), SizeOf(first, dim));
  }
  text += fmt::format("\n  added time against memory with constants (cost model {}{})\n",
                      first.request.cost_model, CountingText(first.request));
  constexpr size_t kLabelWidth = 9;
  text += LinkLine(first.request, kLabelWidth) + '\n';
  text += Chart(all, std::min(room, kWidestChart)).Text() + '\n' + Legend(all, labels) + '\n';
  const ByteUnit unit = UnitOf(LargestPeak(all));
  text += TableOf(all, labels, unit).Text(0, terminal.table_width());
  text += fmt::format(
      "\nsizes in {}; each row is the best plan for any budget from its peak up to the next "
      "row's\n{}",
      unit.name, HasLink(all) ? "on host: peak of the values on the host\n" : "");
  if (first.request.memory.is_given()) {
    text += "need: all the device memory that training needs (docs/accounting.md)\n";
  }
  for (const ParetoSeries& series : all) {
    if (!series.curve) {
      text += fmt::format("no plan: {}: {}\n", labels.Of(series), PrintableMessage(series.failure));
    }
  }
  return text;
}

std::string ParetoMarkdown(const AllSeries& all) {
  const ByteUnit unit = UnitOf(LargestPeak(all));
  return TableOf(all, Labels(all), unit).Markdown() +
         fmt::format("\nSizes in {}; times as shares of a training step.\n", unit.name);
}

std::string ParetoCsv(const AllSeries& all) {
  TextTable table;
  table.columns = {{"model"}, {"dims"}};
  for (const char* const name :
       {"algorithm", "optimizer", "cost_model", "cost_unit", "baseline_peak_bytes",
        "constant_bytes", "budget_bytes", "peak_bytes", "need_bytes", "overhead_cost", "step_cost",
        "added_percent", "failure"}) {
    table.columns.push_back({name});
  }
  const bool has_link = HasLink(all);
  if (has_link) table.columns.push_back({"host_peak_bytes"});
  const auto rest = RequestCells(all.front().request);
  for (const auto& [name, value] : rest) table.columns.push_back({name});
  for (const ParetoSeries& series : all) {
    const std::vector<CurvePoint>& points = Chart::PointsOf(series);
    const size_t first_row = table.rows.size();
    std::vector<std::string> subject = {series.model.name, DimsCell(series.request.dims)};
    const PlanRequest& request = series.request;
    subject.insert(subject.end(),
                   {request.algorithm, std::string(NameOf(request.optimizer)), request.cost_model,
                    request.cost_unit, std::to_string(series.baseline_peak.count()),
                    std::to_string(series.constants.count())});
    for (size_t i = 0; i < points.size(); ++i) {
      const CurvePoint& point = points[i];
      std::vector<std::string> cells = subject;
      for (const int64_t number :
           {point.peak.count(), point.peak.count(), NeedOf(series, i).count(),
            point.overhead.count(), series.curve->step.count()}) {
        cells.push_back(std::to_string(number));
      }
      cells.push_back(fmt::format("{:.4f}", 100 * ShareOf(*series.curve, point)));
      cells.emplace_back();
      if (has_link) cells.push_back(std::to_string(series.curve->host_peaks[i].count()));
      table.rows.push_back(std::move(cells));
    }
    if (!series.curve) {
      subject.insert(subject.end(), 6, "");
      subject.push_back(series.failure);
      if (has_link) subject.emplace_back();
      table.rows.push_back(std::move(subject));
    }
    for (size_t row = first_row; row < table.rows.size(); ++row) {
      for (const auto& [name, value] : rest) table.rows[row].push_back(value);
    }
  }
  return table.Csv();
}

std::string ParetoJson(const AllSeries& all) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("sha256").Text(all.front().model.sha256);
  WriteField("cost_model", all.front().request, &json);
  WriteField("cost_unit", all.front().request, &json);
  json.Key("rows").BeginArray(JsonLayout::kLines);
  for (const ParetoSeries& series : all) {
    if (!series.curve) WriteRow(series, kNoPoint, &json);
    for (size_t i = 0; i < Chart::PointsOf(series).size(); ++i) WriteRow(series, i, &json);
  }
  json.End().End();
  return std::move(json).Finish();
}

std::string ParetoSvg(const AllSeries& all) {
  const Labels labels(all);
  std::vector<ParetoLine> lines;
  for (const ParetoSeries& series : all) {
    if (!series.curve) continue;
    lines.push_back(
        {labels.Of(series), series.baseline_peak, series.curve->step, series.curve->points});
  }
  return WriteParetoSvg(fmt::format("memory and time of {}", all.front().model.name), lines);
}

}  // namespace ckplan
