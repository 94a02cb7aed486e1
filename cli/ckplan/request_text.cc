#include "cli/ckplan/request_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "cli/common/request_flags.h"
#include "lib/base/text.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/parallel/division.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

std::vector<std::string> WarningsOf(const Source& source) {
  std::vector<std::string> warnings = source.warnings;
  if (source.constant_batch) {
    warnings.push_back(fmt::format(
        "{}: its batch, the first dimension of its inputs, is a constant, {}; plan another with {} "
        "N",
        source.identity.name, *source.constant_batch, FlagOf("batch")));
  }
  return warnings;
}

void WarnOf(const Source& source, const Screen& screen) {
  for (const std::string& warning : WarningsOf(source)) screen.Warn(warning);
}

std::vector<std::string> ModelTexts(const PlanRequest& request) {
  std::vector<std::string> texts;
  for (const RequestField& field : RequestFields()) {
    if (field.part != RequestField::Part::kModel) continue;
    const bool is_number = std::holds_alternative<int64_t PlanRequest::*>(field.member);
    for (const std::string& text : TextsOf(field, request)) {
      texts.push_back(is_number ? fmt::format("{}={}", field.key, text) : text);
    }
  }
  return texts;
}

std::string StageText(const PlanRequest& request) {
  return fmt::format("stage {}, {} micro-batches ({})", TextOf(*request.pipeline),
                     request.micro_batches, NameOf(request.schedule));
}

std::string InFlightText(const PlanRequest& request) {
  return fmt::format(
      "{} of {} micro-batches ({})",
      MicroBatchesInFlight(*request.pipeline, request.micro_batches, request.schedule),
      request.micro_batches, NameOf(request.schedule));
}

std::string CountingText(const PlanRequest& request) {
  std::string text;
  if (request.has_master_weights) text += ", master weights";
  if (request.gradients == ParameterGradients::kArriving) text += ", gradients arriving";
  if (request.sharding) text += fmt::format(", each device of {}", TextOf(*request.sharding));
  if (request.pipeline) text += ", " + StageText(request);
  return text;
}

std::string DimsCell(const DimSizes& dims) {
  std::string cell;
  for (const auto& [name, size] : dims) {
    cell += fmt::format("{}{}={}", cell.empty() ? "" : ";", name, size);
  }
  return cell;
}

std::vector<std::pair<std::string, std::string>> RequestCells(const PlanRequest& request) {
  std::vector<std::pair<std::string, std::string>> cells;
  using InTables = FieldScope::InTables;
  for (const InTables place : {InTables::kPatterns, InTables::kCounting}) {
    for (const RequestField& field : RequestFields()) {
      if (field.scope.in_tables != place || IsDefault(field, request)) continue;
      cells.emplace_back(field.key, fmt::format("{}", fmt::join(TextsOf(field, request), " ")));
    }
  }
  return cells;
}

namespace {

// The slowdown of the link to report a time for; its default rate is 85 % of the nominal one.
constexpr int64_t kSlowerPercent = 15;

std::string GigabytesText(int64_t bytes_per_second) {
  constexpr double kGigabyte = 1e9;
  return fmt::format("{:g} GB/s", static_cast<double>(bytes_per_second) / kGigabyte);
}

std::string AddedTimeText(const TrainingStep& step, Cost added) {
  return SignedPercent(Ratio(added.count(), step.cost().count()));
}

// Explains why nothing is moved.
std::string ExplainNoMoves(const Plan& plan) {
  const Result<const SolverInfo*> info = FindSolver(plan.request.algorithm);
  const bool moves =
      info.ok() && ((*info)->name == kBestAlgorithm || (*info)->prepare_offload != nullptr);
  return moves ? "nothing is offloaded"
               : fmt::format("{} does not offload; best does", plan.request.algorithm);
}

}  // namespace

std::string LinkText(const Link& link) {
  constexpr double kMicrosecond = 1000;
  const std::string rates =
      link.out_bytes_per_second == link.in_bytes_per_second
          ? GigabytesText(link.out_bytes_per_second) + " each way"
          : fmt::format("{} out and {} in", GigabytesText(link.out_bytes_per_second),
                        GigabytesText(link.in_bytes_per_second));
  return fmt::format("{}, {}, {} duplex, {:g} us a copy", link.name, rates, NameOf(link.duplex),
                     static_cast<double>(link.latency_ns) / kMicrosecond);
}

std::string LinkLine(const PlanRequest& request, size_t label_width) {
  if (!request.offload) return "";
  const std::string limit = request.host_budget ? fmt::format(", at most {} on the host",
                                                              HumanBytes(*request.host_budget))
                                                : "";
  return fmt::format("  {:<{}}{}{}\n", "offload", label_width, LinkText(*request.offload), limit);
}

std::vector<std::string> OffloadTexts(const TrainingStep& step, const Plan& plan) {
  if (!plan.request.offload || !plan.figures.offload) return {};
  const OffloadFigures& figures = *plan.figures.offload;
  std::vector<std::string> lines = {LinkText(*plan.request.offload)};
  const Transfers transfers = TransfersOf(step, plan.schedule);
  if (transfers.copies.empty()) {
    lines.push_back(ExplainNoMoves(plan));
    return lines;
  }
  const auto outs = static_cast<size_t>(
      std::count_if(transfers.copies.begin(), transfers.copies.end(),
                    [](const LinkCopy& copy) { return copy.way == CopyWay::kOut; }));
  const std::string limit =
      plan.request.host_budget ? fmt::format(" of {}", HumanBytes(*plan.request.host_budget)) : "";
  lines.push_back(fmt::format("{} copies out and {} in, {} together; {}{} on the host", outs,
                              transfers.copies.size() - outs, HumanBytes(figures.transferred),
                              HumanBytes(figures.host_peak), limit));
  const Transfers slower =
      TransfersOver(plan.request.offload->AtPercent(100 - kSlowerPercent), step, plan.schedule);
  const double waiting = Ratio(figures.stall.count(), step.cost().count());
  lines.push_back(fmt::format(
      "{:.1f}% of a step is waiting; over a link {} % slower the time is {}", 100 * waiting,
      kSlowerPercent, AddedTimeText(step, slower.makespan - step.cost())));
  if (figures.host_arena > figures.host_peak) {
    lines.push_back(fmt::format("one slab on the host has {}", HumanBytes(figures.host_arena)));
  }
  return lines;
}

namespace {

void AddLines(const std::vector<MemoryLine>& lines, const ByteUnit& unit, TextTable* table) {
  for (const MemoryLine& line : lines) {
    table->rows.push_back(
        {line.name, AmountIn(unit, line.bytes), std::string(NameOf(line.kind)), line.source});
  }
}

}  // namespace

TextTable AccountingTable(const Accounting& accounting, const std::string& title) {
  const ByteUnit unit = UnitOf(accounting.need());
  TextTable table;
  table.columns = {
      {title}, {unit.name, true}, {"kind"}, {"source", false, TableColumn::Fit::kWrap, 1}};
  AddLines(accounting.tensors, unit, &table);
  table.rows.push_back({"tensors", AmountIn(unit, accounting.tensor_bytes()), "", ""});
  AddLines(accounting.outside, unit, &table);
  table.rows.push_back({"outside", AmountIn(unit, accounting.outside_bytes()), "", ""});
  table.rows.push_back({"need", AmountIn(unit, accounting.need()), "", ""});
  return table;
}

std::string FitLine(const Accounting& accounting, const Budget& memory,
                    std::optional<double> added_share) {
  const Bytes need = accounting.need();
  if (need > memory.bytes) {
    return fmt::format("doesn't fit: it needs {} of {}", HumanBytes(need), MemoryText(memory));
  }
  const std::string spare =
      fmt::format("{} of {} to spare", HumanBytes(memory.bytes - need), MemoryText(memory));
  if (!added_share) return fmt::format("fits as it is, {}", spare);
  // A plan of a joint graph may leave out what nothing needs.
  if (*added_share <= 0) return fmt::format("fits with a plan, no slower, {}", spare);
  return fmt::format("fits with a plan, {:.1f} % slower, {}", 100 * *added_share, spare);
}

std::string MemoryText(const Budget& memory) {
  const std::string size = HumanBytes(memory.bytes);
  return memory.device.empty() ? size : fmt::format("{} ({})", size, memory.device);
}

}  // namespace ckplan
