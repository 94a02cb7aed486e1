#include "cli/ckplan/request_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

#include "cli/common/request_flags.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/problem/parallel/pipeline.h"

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

}  // namespace ckplan
