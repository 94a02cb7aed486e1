#include "cli/ckplan/fit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/request_flags.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/outside.h"

namespace ckplan {
namespace {

constexpr double kNanoseconds = 1e9;  // Nanoseconds per second.

constexpr std::array<std::string_view, 6> kBatchNames = {"n",          "b",         "batch",
                                                         "batch_size", "batchsize", "bs"};
constexpr std::array<std::string_view, 9> kSequenceNames = {
    "l", "s", "t", "seq", "seq_len", "seqlen", "seq_length", "sequence", "sequence_length"};

template <size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& names, const std::string& dim) {
  const std::string lower = LowerCase(dim);
  return std::find(names.begin(), names.end(), lower) != names.end();
}

bool IsSequence(const std::string& dim) { return IsOneOf(kSequenceNames, dim); }

bool IsInSeconds(const Fit& fit) { return fit.plan.cost_unit == "ns"; }

// Returns the size of the only bound dimension of that kind, or nothing.
std::optional<int64_t> FindSingleSize(const DimSizes& dims, bool (*is_kind)(const std::string&)) {
  std::optional<int64_t> only;
  for (const auto& [name, size] : dims) {
    if (!is_kind(name)) continue;
    if (only) return std::nullopt;
    only = size;
  }
  return only;
}

}  // namespace

bool IsBatchName(const std::string& dim) { return IsOneOf(kBatchNames, dim); }

FitRate RateOf(const Fit& fit) {
  const std::string per = IsInSeconds(fit) ? "/s" : "/cost";
  const DimSizes& bound = fit.plan.dims;
  const auto is_sequence = [](const auto& dim) { return IsSequence(dim.first); };
  if (IsBatchName(fit.dim)) {
    const std::optional<int64_t> tokens = FindSingleSize(bound, IsSequence);
    return tokens ? FitRate{"tokens" + per, "tokens" + per, *tokens}
                  : FitRate{"samples" + per, "samples" + per, 1};
  }
  const std::optional<int64_t> samples = FindSingleSize(bound, IsBatchName);
  const bool is_only_sequence =
      IsSequence(fit.dim) && std::none_of(bound.begin(), bound.end(), is_sequence);
  if (is_only_sequence && samples) return {"tokens" + per, "tokens" + per, *samples};
  return {Printable(fit.dim, kLongestName) + per, "1" + per, 1};
}

double Throughput(const Fit& fit, const FitRow& row) {
  const double rate = row.throughput() * static_cast<double>(RateOf(fit).count_of_one);
  return rate * (IsInSeconds(fit) ? kNanoseconds : 1);
}

namespace {

// Four digits or a whole number: "991.0", "97.25", "10622".
std::string RateText(double rate) {
  if (rate >= 1000) return fmt::format("{:.0f}", rate);
  if (rate >= 100) return fmt::format("{:.1f}", rate);
  return rate >= 1 ? fmt::format("{:.2f}", rate) : fmt::format("{:.4g}", rate);
}

double ShareOfStep(const FitRow& row) {
  if (row.step <= Cost(0)) return 0;
  return static_cast<double>(row.overhead.count()) / static_cast<double>(row.step.count());
}

// "keep all", "+5%", "+2.5%"
std::string LabelOf(const FitRow& row) {
  return row.added_percent ? fmt::format("+{:g}%", *row.added_percent) : "keep all";
}

bool IsBest(const Fit& fit, size_t row) { return fit.BestRow() == row; }

TextTable TableOf(const FitReport& report, const ByteUnit& unit) {
  const Fit& fit = report.fit;
  const std::string dim = Printable(fit.dim, kLongestName);
  TextTable table;
  table.columns = {{"plan"},
                   {dim, true},
                   {"peak", true, TableColumn::Fit::kWhole, 1},
                   {"constants", true, TableColumn::Fit::kWhole, 1},
                   {"need", true},
                   {"left", true, TableColumn::Fit::kWhole, 2},
                   {"time", true},
                   {RateOf(fit).name, true},
                   {"limit"}};
  const bool has_link = fit.plan.offload.has_value();
  if (has_link) table.columns.push_back({"on host", true});
  for (size_t i = 0; i < fit.rows.size(); ++i) {
    const FitRow& row = fit.rows[i];
    // A row that adds time without a larger size is dropped.
    if (i > 0 && row.size == fit.rows[i - 1].size) continue;
    std::vector<std::string> cells = {LabelOf(row)};
    if (row.size == 0) {
      cells.insert(cells.end(), 7, "-");
      // If keeping everything fits more sizes, the recomputation costs more than the larger size
      // gains.
      cells.emplace_back(fit.rows.front().size > 0 ? "must add more" : "does not fit");
      if (has_link) cells.emplace_back("-");
    } else {
      cells.insert(cells.end(), {std::to_string(row.size), AmountIn(unit, row.peak),
                                 AmountIn(unit, row.constants), AmountIn(unit, row.need()),
                                 AmountIn(unit, fit.plan.memory.bytes - row.need()),
                                 SignedPercent(ShareOfStep(row)), RateText(Throughput(fit, row)),
                                 std::string(NameOf(row.limit))});
      if (has_link) cells.push_back(AmountIn(unit, row.host_peak));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// What remains for tensors under any plan.
Bytes MemoryForTensors(const Fit& fit) { return fit.plan.memory.bytes - OutsideInMemory(fit.plan); }

std::string MemoryDescription(const Fit& fit) {
  return fmt::format("{}, less {}: {} for tensors", MemoryText(fit.plan.memory),
                     fit.plan.reserve
                         ? fmt::format("a reserve of {}", HumanBytes(*fit.plan.reserve))
                         : fmt::format("{} for cuBLAS, the CUDA context and the driver",
                                       HumanBytes(OutsideInMemory(fit.plan))),
                     HumanBytes(MemoryForTensors(fit)));
}

std::string AlgorithmText(const PlanRequest& plan) {
  std::string text = plan.algorithm;
  if (plan.algorithm == kBestAlgorithm) {
    text += fmt::format(" (effort {}{})", NameOf(plan.effort),
                        plan.order == StepOrder::kFree ? ", free order" : "");
  }
  text += CountingText(plan);
  return fmt::format("{}, optimizer {}, cost model {}", text, NameOf(plan.optimizer),
                     plan.cost_model);
}

// What limits a row other than memory.
std::string ModelLimit(const FitReport& report, const FitRow& row) {
  const std::string dim = Printable(report.fit.dim, kLongestName);
  if (!row.is_refused) return fmt::format("{}: {}\n", dim, PrintableMessage(row.model_limit));
  const std::string limit =
      row.next_size == row.size + 1
          ? fmt::format("the model allows {} <= {}", dim, row.size)
          : fmt::format("the model allows {}={}, but not {}", dim, row.size, row.next_size);
  if (!report.is_verbose) return limit + "\n";
  return fmt::format("{}: {}\n", limit, PrintableMessage(row.model_limit));
}

// One line for each different limit.
std::string ModelLimits(const FitReport& report) {
  std::set<std::string> reported;
  std::string text;
  for (const FitRow& row : report.fit.rows) {
    if (row.model_limit.empty()) continue;
    const std::string limit = ModelLimit(report, row);
    if (reported.insert(limit).second) text += limit;
  }
  return text;
}

void WriteRow(const Fit& fit, const FitRow& row, bool is_best, JsonWriter* json) {
  json->BeginObject(JsonLayout::kInline);
  json->Key("added_percent").Decimal(row.added_percent, 3);
  json->Key("size");
  if (row.size == 0) {
    json->Null().End();
    return;
  }
  json->Integer(row.size);
  json->Key("next_size").Integer(row.next_size);
  json->Key("peak_bytes").Amount(row.peak);
  json->Key("constant_bytes").Amount(row.constants);
  json->Key("need_bytes").Amount(row.need());
  if (fit.plan.offload) json->Key("host_peak_bytes").Amount(row.host_peak);
  json->Key("overhead_cost").Amount(row.overhead);
  json->Key("step_cost").Amount(row.step);
  json->Key("throughput").Decimal(Throughput(fit, row), 6);
  json->Key("is_most").Boolean(is_best);
  json->Key("limit").Text(NameOf(row.limit));
  json->Key("model_limit").TextOrNull(row.model_limit);
  json->Key("is_proven").Boolean(row.is_proven);
  json->Key("accounting");
  WriteAccounting(row.accounting, fit.plan.memory, JsonLayout::kInline, json);
  json->End();
}

}  // namespace

Error NothingFitsError(const FitReport& report) {
  const Fit& fit = report.fit;
  const std::string dim = Printable(fit.dim, kLongestName);
  const std::string memory = HumanBytes(MemoryForTensors(fit));
  if (fit.optimizer_need) {
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format(
            "infeasible: the optimizer step of {} alone needs {} with {}={}; the memory is {}",
            NameOf(fit.plan.optimizer), HumanBytes(*fit.optimizer_need), dim, fit.smallest_size,
            HumanBytes(fit.plan.memory.bytes)));
  }
  if (!fit.shortage) {
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("infeasible: no size of {} fits in {}; allow slower plans with --added-time",
                    dim, memory));
  }
  const ConstantsShortage& shortage = *fit.shortage;
  Error error = MakeError(
      ErrorCode::kInfeasible,
      fmt::format(
          "infeasible: no size of {} fits in {}: the constants alone need {} with {}={}: {}", dim,
          memory, HumanBytes(shortage.needed()), dim, fit.smallest_size,
          PartsText(shortage.constants, shortage.optimizer_state, fit.plan)));
  for (const LessConstants& less : shortage.remedies) {
    const bool is_least = less.setting.name == "freeze";
    error.notes.push_back(
        fmt::format("with {} {} it needs {}{}", FlagOf(less.setting.name), less.setting.value,
                    HumanBytes(less.constants),
                    is_least ? " or more, depending on what is still trained" : ""));
  }
  error.notes.push_back(fmt::format("the device must have more than {}, plus {} outside of tensors",
                                    HumanBytes(shortage.needed()),
                                    HumanBytes(OutsideInMemory(fit.plan))));
  return error;
}

std::string FitText(const FitReport& report, const Terminal& terminal) {
  const Fit& fit = report.fit;
  std::string text =
      fmt::format("ckplan {}   {}", CKPLAN_VERSION, Printable(fit.model.name, kLongestName));
  for (const std::string& size : ModelTexts(fit.plan)) {
    text += "   " + Printable(size, kLongestName);
  }
  constexpr size_t kLabelWidth = 9;
  text += fmt::format("\n  memory   {}\n  plans    {}\n{}\n", MemoryDescription(report.fit),
                      AlgorithmText(fit.plan), LinkLine(fit.plan, kLabelWidth));
  const ByteUnit unit = UnitOf(report.fit.plan.memory.bytes);
  const size_t width = terminal.table_width();
  const std::string notes = fmt::format(
      "\nsizes in {}; need: all the device memory that training needs; time: what the plan adds to "
      "a step\n{}: by the cost model, to compare rows; real times differ\nlimit: what limits the "
      "row: memory, the model, or the added time\n{}",
      unit.name, RateOf(fit).name,
      fit.plan.offload ? "on host: peak of the values on the host\n" : "");
  text = Folded(text, width) + TableOf(report, unit).Text(0, width) +
         Folded(notes + ModelLimits(report), width);
  const std::optional<size_t> next = fit.NextRow();
  if (!next) return text;
  const FitRow& row = fit.rows[*next];
  const std::string title = fmt::format("{}={}", Printable(fit.dim, kLongestName), row.size);
  return text + '\n' + AccountingTable(row.accounting, title).Text(0, width);
}

std::string FitMarkdown(const FitReport& report) {
  const ByteUnit unit = UnitOf(report.fit.plan.memory.bytes);
  return TableOf(report, unit).Markdown() +
         fmt::format("\n{}. Sizes in {}.\n", MemoryDescription(report.fit), unit.name);
}

std::string FitCsv(const FitReport& report) {
  const Fit& fit = report.fit;
  TextTable table;
  table.columns = {
      {"model"},      {"dim"},           {"added_percent"}, {"size"},       {"algorithm"},
      {"optimizer"},  {"memory_bytes"},  {"reserve_bytes"}, {"peak_bytes"}, {"constant_bytes"},
      {"need_bytes"}, {"overhead_cost"}, {"step_cost"},     {"throughput"}, {"throughput_unit"},
      {"is_most"},    {"limit"}};
  const bool has_link = fit.plan.offload.has_value();
  if (has_link) table.columns.push_back({"host_peak_bytes"});
  const auto rest = RequestCells(fit.plan);
  for (const auto& [name, value] : rest) table.columns.push_back({name});
  for (size_t i = 0; i < fit.rows.size(); ++i) {
    const FitRow& row = fit.rows[i];
    std::vector<std::string> cells = {
        fit.model.name,
        fit.dim,
        row.added_percent ? fmt::format("{:g}", *row.added_percent) : "",
        row.size == 0 ? "" : std::to_string(row.size),
        row.added_percent ? fit.plan.algorithm : "keep-all",
        std::string(NameOf(fit.plan.optimizer)),
        std::to_string(fit.plan.memory.bytes.count()),
        std::to_string(OutsideInMemory(fit.plan).count())};
    if (row.size == 0) {
      cells.insert(cells.end(), 6, "");
    } else {
      for (const int64_t number : {row.peak.count(), row.constants.count(), row.need().count(),
                                   row.overhead.count(), row.step.count()}) {
        cells.push_back(std::to_string(number));
      }
      cells.push_back(fmt::format("{:.6f}", Throughput(fit, row)));
    }
    cells.emplace_back(RateOf(fit).unit);
    cells.emplace_back(IsBest(fit, i) ? "true" : "false");
    cells.emplace_back(row.size == 0 ? "" : NameOf(row.limit));
    if (has_link) cells.push_back(row.size == 0 ? "" : std::to_string(row.host_peak.count()));
    for (const auto& [name, value] : rest) cells.push_back(value);
    table.rows.push_back(std::move(cells));
  }
  return table.Csv();
}

std::string FitJson(const FitReport& report) {
  const Fit& fit = report.fit;
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("model").BeginObject(JsonLayout::kInline);
  json.Key("name").Text(fit.model.name).Key("sha256").Text(fit.model.sha256).End();
  json.Key("dim").Text(fit.dim);
  json.Key("multiple_of").Integer(report.multiple_of);
  json.Key("dims").BeginObject(JsonLayout::kInline);
  for (const auto& [name, size] : fit.plan.dims) json.Key(name).Integer(size);
  json.End();
  json.Key("device").TextOrNull(fit.plan.memory.device);
  json.Key("memory_bytes").Amount(fit.plan.memory.bytes);
  json.Key("reserve_bytes").Amount(OutsideInMemory(fit.plan));
  json.Key("budget_bytes").Amount(MemoryForTensors(fit));
  WriteTableFields(FieldScope::InTables::kPatterns, fit.plan, &json);
  WriteField("algorithm", fit.plan, &json);
  json.Key("effort").Text(NameOf(fit.plan.effort));
  WriteField("optimizer", fit.plan, &json);
  WriteTableFields(FieldScope::InTables::kCounting, fit.plan, &json);
  WriteField("cost_model", fit.plan, &json);
  WriteField("cost_unit", fit.plan, &json);
  json.Key("throughput_unit").Text(RateOf(fit).unit);
  json.Key("rows").BeginArray(JsonLayout::kLines);
  for (size_t i = 0; i < fit.rows.size(); ++i) {
    WriteRow(fit, fit.rows[i], IsBest(fit, i), &json);
  }
  json.End().End();
  return std::move(json).Finish();
}

}  // namespace ckplan
