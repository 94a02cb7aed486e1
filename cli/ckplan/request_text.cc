#include "cli/ckplan/request_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/parallel/pipeline.h"
#include "lib/plan/request_fields.h"

namespace ckplan {

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
