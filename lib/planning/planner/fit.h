// Finds the largest size of one dimension of a model, such as its batch, at which a training step
// fits a device: with keep-all, and with plans that add at most a given time.
//
//   need(size) = the peak, the constants, and what is outside of tensors <= memory
//
// lib/planning/plan/accounting.h lists the parts of the need.
//
// The search plans at sizes derived from a few readings of the model (FitRequest::read_size). The
// model is read at the sizes reported, and at the next larger ones, where the search finds no plan.
// If one of them is not as derived, the search starts again and reads each size. The allocator's
// waste does not grow
// evenly with the size, so a few larger sizes are tried as well, except by whole searches of
// `best`. With quick effort, `best` reads each size's plans off its curve and makes no other
// search; the planner, which searches more, may have a plan for a somewhat larger size. With more
// effort, whole searches go on from the sizes that the curve has. A search
// starts from bounds that take milliseconds: the keep-all memory, and the least time that any plan
// in the model's order adds. For the largest size of all, one more search tells whether memory or
// the added time limits its rows.
//
// Cost: about a dozen reads of the model; and per row, about twenty sizes (up to thirty for
// keep-all), with as many readings of a curve, or two to twenty searches.
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
  // Optional: reads it faster, perhaps by derivation. What is reported is read by `read` as well.
  ReadAtSize read_size = {};
  // Binds all other dimensions, and has the device's memory in bytes. It has no other budget.
  PlanRequest plan;
  // The dimension to fit. Empty: the only unbound one or, if all are bound, the batch fixed in the
  // file.
  std::string dim;
  int64_t multiple_of = 1;
  // In percent of a step without recomputation; ascending, none below 0.
  std::vector<double> added_percents = {5, 10, 20, 30};
};

// What limits a row: no larger size fits the memory, the model supports none, or plans for larger
// sizes fit the memory but add more time than the row allows.
enum class FitLimit { kMemory, kModel, kTime };

std::string_view NameOf(FitLimit limit);  // "memory", "model", "time"

struct FitRow {
  std::optional<double> added_percent;  // The most that a plan may add; none: everything is kept.
  int64_t size = 0;                     // 0: not even the smallest size fits.
  // The smallest size tried that does not fit: the next one, or a later one for large sizes
  // (fit_row.h).
  int64_t next_size = 0;
  // The members below are set if some size fits.
  Bytes peak;       // The peak of activations.
  Bytes constants;  // All other tensors.
  Accounting accounting;
  Bytes host_peak;  // The peak on the host of the values that the plan moves there.
  Cost overhead;    // What the plan adds, which may be less than `added_percent`.
  Cost step;        // The cost of a step without recomputation.
  FitLimit limit = FitLimit::kMemory;
  // Every larger size was tried, or needs more memory even if the allocator wastes nothing. Only
  // set for keep-all, because no search proves that no plan fits.
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
  PlanRequest plan;             // The plan requested, with the full name and the unit of the costs.
  std::string dim;              // "batch" for the batch that is burnt into the file.
  bool is_burnt_batch = false;  // Its size is PlanRequest::batch, and not that of a dimension.
  std::vector<FitRow> rows;     // The row of keeping everything, then one for each added time.
  std::vector<std::string> warnings;  // From reading the model.
  // Set if no row has a size because the constants alone exceed the memory at the smallest size
  // that the model supports.
  std::optional<ConstantsShortage> shortage;
  int64_t smallest_size = 0;
  // Set if no row has a size although the constants fit: the memory that the optimizer's step needs
  // at the smallest size, if that is too much.
  std::optional<Bytes> optimizer_need;

  // Returns the row with the highest throughput; ties go to the least added time. Returns nothing
  // if no size fits.
  std::optional<size_t> BestRow() const;
  // Returns the row to suggest for the next command: of the rows with plans that fit, the one whose
  // added time is nearest to the default for plans without a budget
  // (lib/planning/plan/added_time.h); without such rows, keep-all's.
  std::optional<size_t> NextRow() const;
};

// Returns the request for a row's plan, with the dimension bound to the row's size.
PlanRequest RequestOf(const FitRequest& request, const Fit& fit, const FitRow& row);

// kUsage: the costs were measured at a single size; the model has no such dimension; none is named
// and several are unbound; or every size is given. kTimeout: stopped. Otherwise returns the errors
// of reading the model and of the algorithm.
Result<Fit> FindFit(const FitRequest& request, const SolveLimits& limits);

}  // namespace ckplan
