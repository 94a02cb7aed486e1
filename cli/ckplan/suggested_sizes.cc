#include "cli/ckplan/suggested_sizes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "lib/plan/request.h"
#include "lib/planner/source.h"

namespace ckplan {
namespace {

// Sizes for the first dimension, most often a batch, and for the others, most often lengths.
struct ExampleSizes {
  int64_t first;
  int64_t other;
};
constexpr std::array kExamples = {
    ExampleSizes{8, 128}, ExampleSizes{8, 8},   ExampleSizes{128, 128}, ExampleSizes{1, 128},
    ExampleSizes{8, 64},  ExampleSizes{64, 64}, ExampleSizes{1, 1},     ExampleSizes{512, 512}};

// Returns the dimensions that an error asks to bind, or none if it asks for anything else.
std::vector<std::string> OpenDimsIn(const Error& error) {
  std::vector<std::string> dims;
  for (const Remedy::Setting& setting : error.remedy.settings) {
    const size_t open = setting.value.rfind("=...");
    if (setting.name != "dims" || open == std::string::npos) return {};
    dims.push_back(setting.value.substr(0, open));
  }
  return dims;
}

std::vector<std::string> ModelsOf(const Options& options) {
  return options.sources.empty() ? std::vector<std::string>{options.source} : options.sources;
}

// Reads the models with example sizes for `dims`, and for those that another model needs besides.
// If `leaves_one`, one more dimension may stay without a size. Returns all dimensions that got a
// size, or nothing if a model cannot be read with these sizes.
std::optional<std::vector<std::string>> DimsBoundBy(const ExampleSizes& sizes,
                                                    const std::vector<std::string>& models,
                                                    PlanRequest request,
                                                    std::vector<std::string> dims,
                                                    bool leaves_one) {
  for (size_t bound = 0; bound <= dims.size();) {
    for (; bound < dims.size(); ++bound) {
      request.dims[dims[bound]] = bound == 0 ? sizes.first : sizes.other;
    }
    std::vector<std::string> more;
    for (const std::string& path : models) {
      const Result<Source> source = LoadSource(path, request);
      if (source.ok()) continue;
      more = OpenDimsIn(source.error());
      if (leaves_one && more.size() == 1) return dims;
      if (more.empty()) return std::nullopt;
      break;
    }
    if (more.empty()) return dims;
    dims.insert(dims.end(), more.begin(), more.end());
  }
  return std::nullopt;
}

}  // namespace

std::string SuggestedSizes(const Options& options, const Error& error) {
  const std::vector<std::string> open = OpenDimsIn(error);
  if (open.empty() || !options.typed.CanRepeat()) return "";
  RequestFlags flags = options.request;
  if (!flags.BudgetField().empty()) flags = flags.EachBudget().front();
  const bool is_fit = options.memory.has_value();  // It finds one of the sizes.
  if (is_fit) flags.TakeUnboundDims();
  const Result<std::vector<RequestFlags>> sized = flags.EachCombinationOfDims();
  if (!sized.ok()) return "";
  const Result<PlanRequest> request = sized->front().Read();
  if (!request.ok()) return "";
  for (const ExampleSizes& sizes : kExamples) {
    const auto dims = DimsBoundBy(sizes, ModelsOf(options), *request, open, is_fit);
    if (!dims) continue;
    std::string text;
    for (size_t i = 0; i < dims->size(); ++i) {
      const int64_t size = i == 0 ? sizes.first : sizes.other;
      text += " -D " + ShellWord((*dims)[i] + "=" + std::to_string(size));
    }
    return text;
  }
  return "";
}

}  // namespace ckplan
