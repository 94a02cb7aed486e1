#include "cli/ckplan/memory_refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cli/ckplan/accounting_text.h"
#include "cli/ckplan/fit_rate.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/command_line.h"
#include "cli/common/size_arg.h"
#include "lib/base/text.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/fit.h"

namespace ckplan {
namespace {

// Plans that slow a step by more are rarely worth a larger batch.
constexpr double kMostAddedPercent = 30;

// The dimension that people make smaller when training does not fit. Empty for the batch in the
// file; nothing if it is not clear.
std::optional<std::string> DimToShrink(const Source& source) {
  const DimSizes& dims = source.request.dims;
  if (dims.size() == 1) return dims.begin()->first;
  if (dims.empty() && source.constant_batch) return "";
  const auto batch = std::find_if(dims.begin(), dims.end(),
                                  [](const auto& dim) { return IsBatchName(dim.first); });
  if (batch != dims.end()) return batch->first;
  return std::nullopt;
}

// Returns the largest size that fits, such as "N=12".
std::optional<std::string> SizeThatFits(const Source& source, const PlanRequest& request,
                                        const std::string& path, const SolveLimits& limits) {
  const std::optional<std::string> dim = DimToShrink(source);
  if (!source.is_model || !dim || !request.workspaces.empty()) return std::nullopt;
  FitRequest sought;
  sought.read = ReaderOf(path);
  sought.plan = request;
  sought.plan.effort = SearchEffort::kQuick;
  sought.plan.batch = 0;
  if (!dim->empty()) sought.plan.dims.erase(*dim);
  sought.dim = *dim;
  sought.added_percents = {kMostAddedPercent};
  const Result<Fit> fit = FindFit(sought, limits);
  if (!fit.ok() || fit->rows.empty() || fit->rows.back().size == 0) return std::nullopt;
  return fmt::format("{}={}", Printable(fit->dim, kLongestName), fit->rows.back().size);
}

}  // namespace

Error RefusalOfMemory(const Source& source, const PlanRequest& request, const Options& options,
                      const SolveLimits& limits, Error error) {
  const auto least =
      std::find_if(error.remedy.settings.begin(), error.remedy.settings.end(),
                   [](const Remedy::Setting& setting) { return setting.name == "memory"; });
  if (error.code != ErrorCode::kInfeasible || least == error.remedy.settings.end()) return error;
  const Result<Bytes> bytes = ParseSize(least->value, "--memory");
  if (!bytes.ok()) return error;
  error.notes.insert(error.notes.begin(), std::move(error.message));
  error.message = fmt::format("doesn't fit in {}: the least is {}", MemoryText(request.memory),
                              HumanBytes(*bytes));
  if (const auto size = SizeThatFits(source, request, options.source, limits)) {
    error.message += fmt::format("; {} would fit", *size);
  }
  return error;
}

}  // namespace ckplan
