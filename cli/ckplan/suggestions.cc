#include "cli/ckplan/suggestions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ckplan/fit_text.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/command_line.h"
#include "cli/common/request_grid.h"
#include "cli/common/request_values.h"
#include "cli/common/size_arg.h"
#include "lib/base/text.h"
#include "lib/ckplan.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/size_reader.h"
#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/fit.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/vertex_graph.h"

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

std::vector<std::string> ModelsOf(const Options& options) {
  return options.sources.empty() ? std::vector<std::string>{options.source} : options.sources;
}

// The flags that make the models readable.
struct MissingFlags {
  std::vector<std::string> dims;  // Those that need a size.
  std::string ends;               // The values at which the step has to end; empty for outputs.
};

// Reads the models with example sizes for the dimensions of `missing`, and for those that other
// models need. If `leaves_one`, one more dimension may stay without a size. Returns nothing if a
// model cannot be read with these sizes.
std::optional<MissingFlags> FlagsWith(const ExampleSizes& sizes,
                                      const std::vector<std::string>& models, PlanRequest request,
                                      MissingFlags missing, bool leaves_one) {
  std::vector<std::string>& dims = missing.dims;
  for (size_t bound = 0; bound <= dims.size();) {
    for (; bound < dims.size(); ++bound) {
      request.dims[dims[bound]] = bound == 0 ? sizes.first : sizes.other;
    }
    std::vector<std::string> more;
    for (const std::string& path : models) {
      Result<Source> source = LoadSource(path, request);
      const std::string ends = source.ok() ? "" : SuggestOutputs(source.error());
      if (!ends.empty() && missing.ends.empty() && models.size() == 1) {
        missing.ends = ends;
        request.outputs = PartsOfList(ends);
        source = LoadSource(path, request);
      }
      if (source.ok()) continue;
      more = OpenDimsIn(source.error());
      if (leaves_one && more.size() == 1) return missing;
      if (more.empty()) return std::nullopt;
      break;
    }
    if (more.empty()) return missing;
    dims.insert(dims.end(), more.begin(), more.end());
  }
  return std::nullopt;
}

// Whether the registry has every algorithm typed.
bool KnowsAlgorithms(const std::string& list) {
  const std::vector<std::string> names = PartsOfList(list);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "all" || FindSolver(name).ok();
  });
}

}  // namespace

std::string SuggestOutputs(const Error& error) {
  const auto& settings = error.remedy.settings;
  return settings.empty() || settings.front().name != "outputs" ? "" : settings.front().value;
}

std::vector<std::string> OpenDimsIn(const Error& error) {
  constexpr std::string_view kOpen = "=...";
  std::vector<std::string> dims;
  for (const Remedy::Setting& setting : error.remedy.settings) {
    if (setting.name != "dims" || !setting.value.ends_with(kOpen)) continue;
    dims.push_back(setting.value.substr(0, setting.value.size() - kOpen.size()));
  }
  return dims;
}

std::string SuggestedSizes(const Options& options, const Error& error) {
  const std::vector<std::string> open = OpenDimsIn(error);
  if (open.empty() || !options.typed.CanRepeat()) return "";
  RequestFlags flags = options.request;
  flags.LeaveOut("algorithm");  // It may be a list, and does not matter for reading a model.
  if (options.finds_one_size) flags.TakeUnboundDims();
  const Result<RequestGrid> grid = ReadGrid(flags);
  if (!grid.ok()) return "";
  for (const ExampleSizes& sizes : kExamples) {
    const auto missing =
        FlagsWith(sizes, ModelsOf(options), grid->request, {open, ""}, options.finds_one_size);
    if (!missing) continue;
    std::string text;
    for (size_t i = 0; i < missing->dims.size(); ++i) {
      const int64_t size = i == 0 ? sizes.first : sizes.other;
      text += " -D " + ShellWord(missing->dims[i] + "=" + std::to_string(size));
    }
    if (!missing->ends.empty()) text += " --outputs " + ShellWord(missing->ends);
    return text;
  }
  return "";
}

std::string SuggestComparison(const Options& options) {
  if (!options.request.HasList() || !options.typed.CanRepeat()) return "";
  const std::optional<std::string> algorithms = options.request.ValueOf("algorithm");
  if (algorithms && !KnowsAlgorithms(*algorithms)) return "";
  RequestFlags flags = options.request;
  flags.LeaveOut("algorithm");
  const Result<RequestGrid> grid = ReadGrid(flags);
  if (!grid.ok()) return "";
  const Result<Source> source = LoadSource(options.source, grid->request);
  std::string added = source.ok() ? "" : SuggestedSizes(options, source.error());
  if (!source.ok() && added.empty()) return "";
  if (!algorithms) added += " -a best";
  return options.typed.Without({"--output", "--emit"}).With(added);
}

namespace {

// Algorithms that choose a plan for any graph, without a link to the host.
std::vector<std::string_view> AlgorithmsForAnyGraph() {
  std::vector<std::string_view> names;
  for (const SolverInfo* info : ListedAlgorithms()) {
    const bool decides =
        info->guarantee == Guarantee::kHeuristic || info->guarantee == Guarantee::kOptimalInClass;
    const bool takes_any = info->graphs == GraphClass::kAnyDag && info->name != kAutoAlgorithm;
    const bool needs_link = info->prepare_offload != nullptr;
    if (decides && takes_any && !needs_link) names.push_back(info->name);
  }
  return names;
}

}  // namespace

// The first block is one vertex and the last is kept anyway, so a cut needs a block between them.
bool CanBeCut(const TensorGraph& graph) {
  constexpr int32_t kFirstAndLast = 2;
  return FindChain(graph, VertexGraph(graph)).block_count > kFirstAndLast;
}

namespace {

bool IsForChains(const Plan& plan) {
  const auto info = FindSolver(plan.request.algorithm);
  return info.ok() && (*info)->graphs == GraphClass::kChainOfSplittingVertices;
}

// Whether one block between two splitting vertices has most of the graph's memory.
bool HasOneLargeBlock(const TensorGraph& graph) {
  const VertexGraph vertices(graph);
  const Chain chain = FindChain(graph, vertices);
  std::vector<Bytes> memory(static_cast<size_t>(chain.block_count));
  for (const NodeId v : vertices.ids()) {
    memory[static_cast<size_t>(chain.block_of[v])] += vertices.memory(v);
  }
  return 2 * *std::max_element(memory.begin(), memory.end()) > vertices.total_memory();
}

}  // namespace

std::string WhyNothingToCut(const Source& source, const Plan& plan) {
  if (plan.figures.overhead != Cost(0)) return "";
  if (!IsForChains(plan) || CanBeCut(source.graph)) return "";
  return fmt::format(
      "{0} keeps everything: no single tensor splits this graph in two; algorithms for any graph: "
      "{1}",
      plan.request.algorithm, fmt::join(AlgorithmsForAnyGraph(), ", "));
}

std::string BetterAtFrontiers(const Source& source, const PlanRequest& request, const Plan& plan,
                              const Options& options, const SolveLimits& limits) {
  constexpr std::string_view kFrontier = "chen-frontier";
  if (request.granularity == Granularity::kLayer || plan.figures.overhead == Cost(0)) return "";
  if (!IsForChains(plan) || !HasOneLargeBlock(source.graph)) return "";
  PlanRequest other = request;
  other.algorithm = kFrontier;
  other.setting.reset();
  const Result<Plan> frontier = MakePlan(source, other, limits);
  if (!frontier.ok()) return "";
  // Both plans fit in a budget; without one, the other must be better in memory.
  const PlanFigures& figures = frontier->figures;
  const bool is_better =
      PeakBudgetOf(request).is_given()
          ? figures.overhead < plan.figures.overhead
          : figures.peak < plan.figures.peak && figures.overhead <= plan.figures.overhead;
  if (!is_better) return "";
  std::string hint =
      fmt::format("{} is better here: peak {}, time {}", kFrontier, HumanBytes(figures.peak),
                  SignedPercent(StepOverheadRatio(figures)));
  if (options.typed.CanRepeat()) {
    hint += ": ckplan plan" + options.typed.Without({"--algo", "--knob", "--output", "--emit"})
                                  .With(fmt::format(" -a {}", kFrontier));
  }
  return hint;
}

namespace {

// Plans that slow a step by more are rarely worth a larger batch.
constexpr double kMaxAddedPercent = 30;

// The dimension to suggest shrinking when training does not fit: "" for a batch fixed in the file,
// nullopt if none stands out.
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
  sought.read_size = SizeReaderOf(path);
  sought.plan = request;
  sought.plan.effort = SearchEffort::kQuick;
  sought.plan.batch = 0;
  if (!dim->empty()) sought.plan.dims.erase(*dim);
  sought.dim = *dim;
  sought.added_percents = {kMaxAddedPercent};
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
