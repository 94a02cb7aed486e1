#include "cli/ckplan/compare_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "cli/ckplan/options.h"
#include "cli/ckplan/request_text.h"
#include "cli/ckplan/suggestions.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

std::string FileName(const std::string& path) {
  return path == kStandardStream ? "stdin" : std::filesystem::path(path).filename().string();
}

// Returns whether several of the models have the name of this file, so that the path as it was
// typed must tell them apart.
bool SharesName(const CompareJob& job, const std::string& path) {
  return std::any_of(job.paths.begin(), job.paths.end(), [&](const std::string& other) {
    return other != path && FileName(other) == FileName(path);
  });
}

// The user's time limit covers reading as well. Returns nothing if Ctrl-C has ended it.
Result<std::optional<Source>> ReadModel(const Options& options, const std::string& path,
                                        const PlanRequest& request) {
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Result<Source> source = LoadInTime(path, request, options);
  if (interrupt.was_interrupted()) return std::optional<Source>();
  if (!source.ok()) return std::move(source).error();
  return std::optional(std::move(source).value());
}

// The names of all dimensions with a size; one of several models may lack some of them.
std::set<std::string> NamesOfDims(const DimSizes& dims) {
  std::set<std::string> names;
  for (const auto& [name, size] : dims) names.insert(name);
  return names;
}

DimSizes OnlyOf(const DimSizes& dims, const std::set<std::string>& names) {
  DimSizes rest;
  for (const auto& [name, size] : dims) {
    if (names.contains(name)) rest.emplace(name, size);
  }
  return rest;
}

Error AddModelName(Error error, const std::string& model) {
  if (error.message.find(model) == std::string::npos) error.message = model + ": " + error.message;
  return error;
}

// A warning begins with the name of its model's file. Models whose names are equal have their paths
// instead.
std::string AddNameToWarning(const std::string& warning, const std::string& name,
                             const std::string& model) {
  const std::string start = name + ": ";
  return warning.starts_with(start) ? model + ": " + warning.substr(start.size()) : warning;
}

// Reads every model, with each combination of sizes that it has.
class ModelReader {
 public:
  ModelReader(const Options& options, const CompareJob& job, const Screen& screen)
      : options_(options), job_(job), screen_(screen) {}

  Result<std::optional<std::vector<Comparison>>> ReadAll() {
    for (const std::string& path : job_.paths) {
      CKPLAN_ASSIGN_OR_RETURN(const bool is_whole, ReadSizes(path));
      if (!is_whole) return std::optional<std::vector<Comparison>>();
    }
    CKPLAN_RETURN_IF_ERROR(CheckDims());
    return std::optional(std::move(read_));
  }

 private:
  Result<bool> ReadSizes(const std::string& path) {
    std::optional<std::set<std::string>> names;  // The model's own, once they are known.
    std::vector<DimSizes> seen;
    for (const DimSizes& sizes : job_.grid.sizes) {
      const DimSizes model_sizes = names ? OnlyOf(sizes, *names) : sizes;
      if (std::find(seen.begin(), seen.end(), model_sizes) != seen.end()) continue;
      PlanRequest request = job_.grid.With(model_sizes);
      if (job_.has_several_models()) request.optional_dims.merge(NamesOfDims(sizes));
      CKPLAN_ASSIGN_OR_RETURN(const bool is_whole, Read(path, request));
      if (!is_whole) return false;
      const Comparison& last = read_.back();
      if (!last.unread) names = NamesOfDims(last.dims);
      seen.push_back(last.dims);
    }
    return true;
  }

  Result<bool> Read(const std::string& path, const PlanRequest& request) {
    Comparison comparison;
    comparison.model = SharesName(job_, path) ? path : FileName(path);
    comparison.dims = request.dims;
    comparison.request = request;
    Progress progress(screen_.shows_progress);
    progress.Stage(fmt::format("reading {}", path));
    Result<std::optional<Source>> source = ReadModel(options_, path, request);
    progress.Clear();
    if (source.ok() && !*source) return false;
    const Result<Done> taken = source.ok() ? Take(**std::move(source), path, &comparison)
                                           : Result<Done>(std::move(source).error());
    if (!taken.ok()) {
      if (!job_.has_several()) return taken.error();
      comparison.unread = AddModelName(taken.error(), comparison.model);
      if (comparison.unread->code == ErrorCode::kUsage) return *comparison.unread;
    }
    read_.push_back(std::move(comparison));
    return true;
  }

  // Returns the error of a model that has nothing to plan.
  Result<Done> Take(Source source, const std::string& path, Comparison* comparison) {
    for (const std::string& warning : WarningsOf(source)) {
      const std::string line = AddNameToWarning(warning, source.identity.name, comparison->model);
      if (!job_.has_several() || warned_.insert(line).second) screen_.Warn(line);
    }
    if (source.step().node_count() == 0) {
      return MakePlan(source.graph, comparison->request, {}).error();
    }
    if (SharesName(job_, path)) source.identity.name = path;
    comparison->model = source.identity.name;
    comparison->dims = source.request.dims;
    comparison->baseline_peak = KeepAllPeak(source.step());
    comparison->has_cuts = CanBeCut(source.graph);
    comparison->source = std::move(source);
    return Done{};
  }

  // A model that was not read may have any dimension.
  Result<Done> CheckDims() const {
    std::set<std::string> known;
    for (const Comparison& comparison : read_) {
      if (comparison.unread) return Done{};
      known.merge(NamesOfDims(comparison.dims));
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    for (const auto& [name, size] : job_.grid.sizes.front()) {
      if (known.contains(name) || job_.grid.request.optional_dims.contains(name)) continue;
      const std::string why = names.empty()
                                  ? fmt::format("\"{}\"; the models have no open dimensions", name)
                                  : DescribeUnknownName(name, names);
      return MakeError(ErrorCode::kUsage, "-D: no model has a dimension " + why);
    }
    return Done{};
  }

  const Options& options_;
  const CompareJob& job_;
  const Screen& screen_;
  std::vector<Comparison> read_;
  std::set<std::string> warned_;
};

}  // namespace

Result<std::optional<std::vector<Comparison>>> ReadModels(const Options& options,
                                                          const CompareJob& job,
                                                          const Screen& screen) {
  return ModelReader(options, job, screen).ReadAll();
}

}  // namespace ckplan
