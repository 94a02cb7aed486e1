#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/testing/ptx/planted_faults.h"

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

// A struct with different layouts on the host and the GPU.
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

enum class SumFault { kNone, kNoBarrier, kDivergedBarrier, kUnwritten };

// Padding follows `count`. It is copied, but never written.
struct Share {
  double sum;
  int count;
};

// Sums with one block of kBlockThreads threads.
__global__ void SumKernel(PlantedArrays arrays, SumFault fault) {
  __shared__ Share shares[kBlockThreads];
  Share own{0, 0};
  for (int64_t i = threadIdx.x; i < arrays.count; i += kBlockThreads) {
    own.sum += static_cast<double>(arrays.x[i]);
    ++own.count;
  }
  if (fault != SumFault::kUnwritten || own.count > 1) shares[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kBlockThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const Share other = shares[threadIdx.x + half];
      shares[threadIdx.x].sum += other.sum;
      shares[threadIdx.x].count += other.count;
      if (fault == SumFault::kDivergedBarrier) __syncthreads();
    }
    if (fault == SumFault::kNone || fault == SumFault::kUnwritten) __syncthreads();
  }
  if (threadIdx.x == 0) arrays.y[0] = static_cast<float>(shares[0].sum);
}

void Sum(Device& device, const PlantedArrays& arrays, SumFault fault) {
  Launch(device, SumKernel, {1}, arrays, fault);
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

void DoubleMisaligned(Device& device, const PlantedArrays& arrays, bool has_fault) {
  const FloatsIn x(arrays.x + (has_fault ? 1 : 0), ElementType::kFloat32);
  const FloatsOut y(arrays.y, ElementType::kFloat32);
  const int64_t groups = arrays.count / kVector - 1;
  ForEach(device, arrays.count - groups * kVector, [=] CKPLAN_KERNEL(int64_t i) {
    arrays.y[groups * kVector + i] = 2 * arrays.x[groups * kVector + i];
  });
  ForEach(device, groups, [=] CKPLAN_KERNEL(int64_t group) {
    Float4 values = x.Load(group);
    for (int k = 0; k < kVector; ++k) values.at[k] *= 2;
    y.Store(group, values);
  });
}

void SumWithUnsynchronisedRead(Device& device, const PlantedArrays& arrays, bool has_fault) {
  Sum(device, arrays, has_fault ? SumFault::kNoBarrier : SumFault::kNone);
}

void SumWithDivergedBarrier(Device& device, const PlantedArrays& arrays, bool has_fault) {
  Sum(device, arrays, has_fault ? SumFault::kDivergedBarrier : SumFault::kNone);
}

void SumWithUnwrittenShare(Device& device, const PlantedArrays& arrays, bool has_fault) {
  Sum(device, arrays, has_fault ? SumFault::kUnwritten : SumFault::kNone);
}

void SumByWarp(Device& device, const PlantedArrays& arrays) {
  ForRows(device, 1, arrays.count, [=] CKPLAN_KERNEL(const Team& team, int64_t) {
    const float sum = team.Sum(arrays.count, [&](int64_t i) { return arrays.x[i]; });
    if (team.IsFirst()) arrays.y[0] = sum;
  });
}

}  // namespace ckplan::cuda
