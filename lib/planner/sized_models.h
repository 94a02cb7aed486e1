// A model at the sizes of one dimension that a search asks about, each of them read once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/source.h"

namespace ckplan {

struct SizedModel {
  Source source;
  Bytes constants;
  Bytes keep_all_peak;
  Cost forced;  // What keeping all that may be kept adds.
  Cost step;

  Bytes need() const { return keep_all_peak + constants; }
  // Of plans within a budget on the peak: see OwnOrderBound.
  std::optional<Cost> Bound(Bytes budget) const;
};

// Several threads may ask at once. Sizes are given as counts: multiples of what they must be a
// multiple of.
class SizedModels {
 public:
  // Of the dimension `dim`; `request` binds all others. Keeps references to all but that.
  SizedModels(const std::string& path, const PlanRequest& request, std::string dim,
              int64_t multiple_of, const SolveLimits& limits)
      : path_(path),
        request_(request),
        dim_(std::move(dim)),
        multiple_of_(multiple_of),
        limits_(limits) {}

  // Null if the model takes no such size. Errors are those of LoadSource which another size would
  // not mend. What is returned stays where it is.
  Result<const SizedModel*> At(int64_t count);

  // Why the model takes no such size; nothing where it does, and where nobody has asked for it.
  std::optional<Error> RefusalOf(int64_t count);

 private:
  const std::string& path_;
  const PlanRequest& request_;
  const std::string dim_;
  const int64_t multiple_of_;
  const SolveLimits& limits_;
  std::mutex mutex_;                     // Of the two that follow.
  std::map<int64_t, SizedModel> known_;  // By count.
  std::map<int64_t, Error> refusals_;    // Likewise.
};

}  // namespace ckplan
