#include "lib/cuda/launch.h"
#include "lib/cuda/ptx/planted_faults.h"

namespace ckplan::cuda {

namespace {

// A member function's kernel must copy the members that it uses: a captured `this` points to the
// host.
struct Doubler {
  float factor = 2;

  void RunSound(Device& device, const PlantedArrays& arrays) const {
    const float own = factor;
    ForEach(device, arrays.count,
            [=] CKPLAN_KERNEL(int64_t i) { arrays.y[i] = own * arrays.x[i]; });
  }
  void RunWithThis(Device& device, const PlantedArrays& arrays) const {
    const Doubler* const self = this;
    ForEach(device, arrays.count,
            [=] CKPLAN_KERNEL(int64_t i) { arrays.y[i] = self->factor * arrays.x[i]; });
  }
};

// A struct that the host's compiler and the GPU's lay out differently.
struct Uneven {
#ifdef __CUDA_ARCH__
  int64_t only_on_gpu[4];
#endif
  float* y;
};

struct Even {
  float* y;
};

template <typename Target>
struct DoubleInto {
  Target target;
  const float* x;
  CKPLAN_DEVICE void operator()(int64_t i) const { target.y[i] = 2 * x[i]; }
};

template <typename Target>
void DoubleThrough(Device& device, const PlantedArrays& arrays) {
  DoubleInto<Target> body;
  body.target.y = arrays.y;
  body.x = arrays.x;
  ForEach(device, arrays.count, body);
}

// Sums with one block of kBlockThreads threads.
__global__ void SumKernel(PlantedArrays arrays, bool waits) {
  __shared__ float partial[kBlockThreads];
  float own = 0;
  for (int64_t i = threadIdx.x; i < arrays.count; i += kBlockThreads) own += arrays.x[i];
  partial[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kBlockThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    if (waits) __syncthreads();
  }
  if (threadIdx.x == 0) arrays.y[0] = partial[0];
}

}  // namespace

void DoubleWithCapturedThis(Device& device, const PlantedArrays& arrays, bool has_fault) {
  const Doubler doubler;
  has_fault ? doubler.RunWithThis(device, arrays) : doubler.RunSound(device, arrays);
  device.Synchronize();
}

void DoubleWithIndexOffByOne(Device& device, const PlantedArrays& arrays, bool has_fault) {
  const int64_t ahead = has_fault ? 1 : 0;
  ForEach(device, arrays.count,
          [=] CKPLAN_KERNEL(int64_t i) { arrays.y[i + ahead] = 2 * arrays.x[i]; });
}

void DoubleWithOtherParameter(Device& device, const PlantedArrays& arrays, bool has_fault) {
  has_fault ? DoubleThrough<Uneven>(device, arrays) : DoubleThrough<Even>(device, arrays);
}

void SumWithUnsynchronisedRead(Device& device, const PlantedArrays& arrays, bool has_fault) {
  Launch(device, SumKernel, {1}, arrays, !has_fault);
}

void SumByWarp(Device& device, const PlantedArrays& arrays) {
  ForRows(device, 1, arrays.count, [=] CKPLAN_KERNEL(const Team& team, int64_t) {
    const float sum = team.Sum(arrays.count, [&](int64_t i) { return arrays.x[i]; });
    if (team.IsFirst()) arrays.y[0] = sum;
  });
}

}  // namespace ckplan::cuda
