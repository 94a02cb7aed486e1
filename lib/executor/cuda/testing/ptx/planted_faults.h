// Kernels with planted faults, to check that the interpreter finds them. They use the launches and
// teams of the backend's own kernels, and are compiled with nvcc.
#pragma once

#include <cstdint>

#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// Arrays of `count` floats in the device's memory.
struct PlantedArrays {
  const float* x = nullptr;
  float* y = nullptr;
  int64_t count = 0;
};

// These functions double x into y, or sum it into y[0], with or without the fault. They are in two
// files, because one of them changes how a header compiles.
void DoubleWithCapturedThis(Device& device, const PlantedArrays& arrays, bool has_fault);
void DoubleWithIndexOffByOne(Device& device, const PlantedArrays& arrays, bool has_fault);
void DoubleWithOtherParameter(Device& device, const PlantedArrays& arrays, bool has_fault);
void DoubleMisaligned(Device& device, const PlantedArrays& arrays, bool has_fault);
void SumWithDivergedBarrier(Device& device, const PlantedArrays& arrays, bool has_fault);
void SumWithUnwrittenShare(Device& device, const PlantedArrays& arrays, bool has_fault);
void SumWithUnsynchronisedRead(Device& device, const PlantedArrays& arrays, bool has_fault);
void SumByWarp(Device& device, const PlantedArrays& arrays);
void SumByWarpWithoutBarrier(Device& device, const PlantedArrays& arrays);

}  // namespace ckplan::cuda
