// The largest size of one dimension of a model, such as its batch, with which a training step fits
// a device: keeping everything, and by plans that add at most so much time.
//
//   need(size) = peak of activations + parameters, gradients, optimizer state, inputs <= memory
//
// Memory is taken to grow with the size. Nothing that is reported is interpolated: of each size the
// model is read and planned at that very size, and at the next larger one, where the same request
// finds no such plan. Where a search starts follows from bounds, which take milliseconds: what
// keeping everything needs, and what a plan in the model's order adds at least.
//
// Cost: some ten readings of the model for each row, and two to fifteen searches for a plan; two
// rows at once where `best` plans with quick effort.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/constants_shortage.h"

namespace ckplan {

struct FitRequest {
  std::string path;  // Of an ONNX model.
  PlanRequest plan;  // With the sizes of all other dimensions, and without a budget.
  std::string dim;   // The one whose size is sought; empty: the only one that is open.
  int64_t multiple_of = 1;
  Bytes memory;  // For all that a step holds, its constants included.
  // Of a step without recomputation; ascending, none below 0.
  std::vector<double> added_percents = {5, 10, 20, 30};
};

struct FitRow {
  std::optional<double> added_percent;  // What a plan may add; nothing: everything is kept.
  int64_t size = 0;                     // 0: not even the smallest fits.
  // The members below are set if one fits.
  Bytes peak;               // Of activations.
  Bytes constants;          // All else.
  Cost overhead;            // What the plan that was found adds; it may be less than what it may.
  Cost step;                // A step without recomputation.
  std::string model_limit;  // Why the model takes no larger size; empty where memory is what ends.

  Bytes need() const { return peak + constants; }
  // Sizes per unit of cost.
  double throughput() const {
    return static_cast<double>(size) / static_cast<double>((step + overhead).count());
  }
};

struct Fit {
  ModelIdentity model;
  PlanRequest plan;  // As asked for, with the full name of the costs and their unit.
  std::string dim;
  std::vector<FitRow> rows;           // Keeping everything, then one for each added time.
  std::vector<std::string> warnings;  // Of reading the model.
  // Set where no row has a size because the constants alone exceed the memory: those of the
  // smallest size that the model takes.
  std::optional<ConstantsShortage> shortage;
  int64_t smallest_size = 0;

  // The row of the most throughput, of several that of the least added time; nothing if none fits.
  std::optional<size_t> BestRow() const;
  // The row to go on from: of those by plans that fit, the one whose added time is nearest to what
  // plans for no budget may add (lib/plan/added_time.h), or else that of keeping everything.
  std::optional<size_t> NextRow() const;
};

// The request that makes the plan of a row again: the size bound, and the memory as its budget.
PlanRequest RequestOf(const FitRequest& request, const Fit& fit, const FitRow& row);

// kUsage: the file is a graph, whose sizes are fixed; or costs were measured, at one size; or the
// dimension is none of the model's, or it is not said which of several is meant. kTimeout: stopped.
// Other errors are those of reading the model and of the algorithm.
Result<Fit> FindFit(const FitRequest& request, const SolveLimits& limits);

}  // namespace ckplan
