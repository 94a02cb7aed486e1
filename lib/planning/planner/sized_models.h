// Reads a model at the sizes of one dimension that a search asks for, each of them once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
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
  Bytes covered = {};     // The constants, and what is outside of tensors whatever the plan.
  Bytes least_need = {};  // What training needs at the least, whatever the plan.
  Bytes keep_all_peak = {};
  Accounting keep_all = {};  // What keep-all needs.
  Cost forced = {};          // What a plan adds that keeps all that may be kept.
  Cost step = {};            // The cost of a step without recomputation.

  Bytes need() const { return keep_all.need(); }
  // Returns a lower bound on the time that plans within a budget on the peak add: see
  // OwnOrderBound.
  std::optional<Cost> Bound(Bytes budget) const;
};

// Several threads may use an object at the same time. A size is given as its quotient by
// `multiple_of`, the count.
class SizedModels {
 public:
  // Sizes are those of the dimension `dim`, or of the batch that is burnt into the model if `dim`
  // is empty; `request` binds all others. Keeps references to `read`, the request and the limits.
  SizedModels(const ReadSource& read, const PlanRequest& request, std::string dim,
              int64_t multiple_of, const SolveLimits& limits)
      : read_(read),
        request_(request),
        dim_(std::move(dim)),
        multiple_of_(multiple_of),
        limits_(limits) {}

  // Returns null if the model does not take this size. Errors are those of reading it that another
  // size would not avoid. The pointer stays valid.
  Result<const SizedModel*> At(int64_t count);

  // Returns why the model does not take this size, or nothing if it does or if At was never called
  // with it.
  std::optional<Error> RefusalOf(int64_t count);

 private:
  const ReadSource& read_;
  const PlanRequest& request_;
  const std::string dim_;
  const int64_t multiple_of_;
  const SolveLimits& limits_;
  std::mutex mutex_;                     // Protects the next two.
  std::map<int64_t, SizedModel> known_;  // By count.
  std::map<int64_t, Error> refusals_;    // By count.
};

}  // namespace ckplan
