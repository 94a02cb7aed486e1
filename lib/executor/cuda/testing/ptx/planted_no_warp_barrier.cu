// A team of one warp without its barriers.
#define __syncwarp()
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/testing/ptx/planted_faults.h"

namespace ckplan::cuda {

void SumByWarpWithoutBarrier(Device& device, const PlantedArrays& arrays) {
  ForRows(device, 1, arrays.count, [=] CKPLAN_KERNEL(const Team& team, int64_t) {
    const float sum = team.Sum(arrays.count, [&](int64_t i) { return arrays.x[i]; });
    if (team.IsFirst()) arrays.y[0] = sum;
  });
}

}  // namespace ckplan::cuda
