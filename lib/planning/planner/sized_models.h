// Reads and caches a model at the sizes of one dimension that a search tries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

struct SizedModel {
  Source source;
  Bytes constants = {};
  Bytes covered = {};     // Constants, and memory outside of tensors, for every plan.
  Bytes least_need = {};  // A lower bound for every plan.
  Bytes keep_all_peak = {};
  Accounting keep_all = {};  // For keep-all.
  Cost forced = {};          // The added time when keeping all that may be kept.
  Cost step = {};            // The time of a step without recomputation.

  Bytes need() const { return keep_all.need(); }
  // Returns a lower bound on the added time of plans within a budget on the peak; see
  // OwnOrderBound.
  std::optional<Cost> Bound(Bytes budget) const;
};

// A count is a size divided by `multiple_of`.
class SizedModels {
 public:
  // Sizes are those of the dimension `dim` or, if `dim` is empty, of the model's fixed batch;
  // `request` binds all other dimensions. Keeps references to `read`, the request and the limits.
  SizedModels(const ReadAtSize& read, const PlanRequest& request, std::string dim,
              int64_t multiple_of, const SolveLimits& limits)
      : read_(read),
        request_(request),
        dim_(std::move(dim)),
        multiple_of_(multiple_of),
        limits_(limits) {}

  // Returns null if the model doesn't support this size. Returns errors of reading that other sizes
  // would have as well. The pointer stays valid.
  Result<const SizedModel*> At(int64_t count);

  // Returns why the model doesn't support this size, or nothing if it does or if At was never
  // called with it.
  std::optional<Error> RefusalOf(int64_t count) const;

  // Tells whether the file, as `read` reads it, is the model that At returned.
  bool IsAsRead(int64_t count, const ReadSource& read) const;

 private:
  PlanRequest RequestAt(int64_t count) const;

  const ReadAtSize& read_;
  const PlanRequest& request_;
  const std::string dim_;
  const int64_t multiple_of_;
  const SolveLimits& limits_;
  std::map<int64_t, SizedModel> known_;  // By count.
  std::map<int64_t, Error> refusals_;    // By count.
};

}  // namespace ckplan
