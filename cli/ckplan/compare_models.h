// Reads the models of `ckplan compare`, each with every combination of sizes that it has.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/ckplan/comparison.h"
#include "cli/ckplan/options.h"
#include "cli/common/request_grid.h"
#include "cli/common/terminal.h"

namespace ckplan {

// What is asked for.
struct CompareJob {
  std::vector<std::string> paths;  // Each once, in the order typed.
  RequestGrid grid;
  std::vector<const SolverInfo*> algorithms;
  bool names_algorithms = false;
  // For each algorithm. Without it, every algorithm but `best` is limited in its work.
  std::optional<std::chrono::milliseconds> time_limit;

  bool has_several_models() const { return paths.size() > 1; }
  bool has_several() const { return has_several_models() || grid.sizes.size() > 1; }
};

// Returns comparisons without rows, or nothing if Ctrl-C has ended the reading. If there are
// several models or sizes, one that cannot be read is a comparison that says so; otherwise the
// error is returned. kUsage: the request does not apply to a model, or a dimension is of none of
// them.
Result<std::optional<std::vector<Comparison>>> ReadModels(const Options& options,
                                                          const CompareJob& job,
                                                          const Screen& screen);

}  // namespace ckplan
