// Finds the largest size of one dimension of a model, such as its batch, with which a training step
// fits a device: when everything is kept, and with plans that add at most a given time.
//
//   need(size) = the peak, the constants, and what is outside of tensors <= memory
//
// lib/planning/plan/accounting.h lists the parts of the need.
//
// No reported figure is interpolated: for each size, the model is read and planned at exactly that
// size, and at the next larger one, where the same request finds no such plan. What the allocator
// wastes does not grow evenly with the size, so a few larger sizes are tried, too, except by
// `best`. A search starts from bounds that take milliseconds: the memory of keeping everything, and
// the least time that any plan in the model's order adds. `best` then reads its curve at each size
// that is tried, and searches wholly only above the largest size for which the curve has a plan.
// For the largest size of all, one more search says whether memory or the added time ends its rows.
//
// Cost: for each row, about ten readings of the model (up to thirty for keeping everything), and
// two to twenty searches for a plan. Two rows are computed at once where `best` plans with quick
// effort.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/constants_shortage.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

struct FitRequest {
  ReadSource read;  // Reads the ONNX model.
  // Has the sizes of all other dimensions and the device's memory, in bytes. It has no other
  // budget.
  PlanRequest plan;
  // The dimension whose size is sought. Empty: the only one without a size or, if every dimension
  // has one, the batch that is burnt into the file.
  std::string dim;
  int64_t multiple_of = 1;
  // In percent of a step without recomputation; ascending, none below 0.
  std::vector<double> added_percents = {5, 10, 20, 30};
};

// What ends a row: no larger size fits the memory, the model takes none, or plans of a larger size
// fit the memory, but add more time than the row allows.
enum class FitLimit { kMemory, kModel, kTime };

std::string_view NameOf(FitLimit limit);  // "memory", "model", "time"

struct FitRow {
  std::optional<double> added_percent;  // The most that a plan may add; none: everything is kept.
  int64_t size = 0;                     // 0: not even the smallest size fits.
  // The smallest size that was tried and does not fit: the next one, or a later one if sizes are in
  // the hundreds (fit_row.h).
  int64_t next_size = 0;
  // The members below are set if a size fits.
  Bytes peak;       // The peak of activations.
  Bytes constants;  // All other tensors.
  Accounting accounting;
  Bytes host_peak;  // The peak on the host of the values that the plan moves there.
  Cost overhead;    // What the plan adds, which may be less than `added_percent`.
  Cost step;        // The cost of a step without recomputation.
  FitLimit limit = FitLimit::kMemory;
  // Every larger size was tried, or needs more even if the allocator wastes nothing. Only for the
  // row of keeping everything, since no search proves that no plan fits.
  bool is_proven = false;
  std::string model_limit;  // Why no larger size is taken, if that is the limit.
  bool is_refused = false;  // The model takes no larger size. False: the size hardly matters.

  Bytes need() const { return accounting.need(); }
  // Sizes per unit of cost.
  double throughput() const {
    return static_cast<double>(size) / static_cast<double>((step + overhead).count());
  }
};

struct Fit {
  ModelIdentity model;
  PlanRequest plan;  // The plan that was asked for, with the full name and the unit of the costs.
  std::string dim;   // "batch" for the batch that is burnt into the file.
  bool is_burnt_batch = false;  // Its size is PlanRequest::batch, and not that of a dimension.
  std::vector<FitRow> rows;     // The row of keeping everything, then one for each added time.
  std::vector<std::string> warnings;  // From reading the model.
  // Set if no row has a size because the constants alone exceed the memory. It is for the smallest
  // size that the model takes.
  std::optional<ConstantsShortage> shortage;
  int64_t smallest_size = 0;
  // Set if no row has a size although the constants fit: what the optimizer's step needs of the
  // device at that size, if that is more than its memory.
  std::optional<Bytes> optimizer_need;

  // Returns the row of the highest throughput, and among several the one of the least added time.
  // Returns nothing if no size fits.
  std::optional<size_t> BestRow() const;
  // Returns the row for which the next command is suggested: of the rows by plans that fit, the one
  // whose added time is nearest to what plans without a budget may add
  // (lib/planning/plan/added_time.h). If there is none, it is the row of keeping everything.
  std::optional<size_t> NextRow() const;
};

// Returns the request that makes the plan of a row again: the dimension is bound to the row's size.
PlanRequest RequestOf(const FitRequest& request, const Fit& fit, const FitRow& row);

// kUsage: the costs were measured at a single size; the
// model has no such dimension; none is named and the model has several; or every size is given.
// kTimeout: stopped. Other errors are those of reading the model and of the algorithm.
Result<Fit> FindFit(const FitRequest& request, const SolveLimits& limits);

}  // namespace ckplan
