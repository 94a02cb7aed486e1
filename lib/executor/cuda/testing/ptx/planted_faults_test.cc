// Plays kernels with planted faults, which nvcc has compiled.
#include "lib/executor/cuda/testing/ptx/planted_faults.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "lib/executor/cuda/testing/host/host_device.h"
#include "lib/executor/cuda/testing/ptx/launches.h"

namespace ckplan::cuda {
namespace {

constexpr int64_t kCount = 300;

using Run = void (*)(Device& device, const PlantedArrays& arrays, bool has_fault);

void SumByWarps(Device& device, const PlantedArrays& arrays, bool has_fault) {
  has_fault ? SumByWarpWithoutBarrier(device, arrays) : SumByWarp(device, arrays);
}

struct Outcome {
  bool is_right = false;
  std::string findings;
};

Outcome RunPlanted(Run run, bool is_sum, bool has_fault) {
  ptx::FindingsSoFar() = {};
  const auto device = MakeHostDevice();
  std::vector<float> x(kCount);
  std::iota(x.begin(), x.end(), 1.0F);
  std::vector<float> y(kCount, 0);
  const int64_t bytes = kCount * 4;
  PlantedArrays arrays;
  void* const from = *device->Allocate(bytes);
  void* const to = *device->Allocate(bytes);
  device->Upload(from, x.data(), bytes);
  device->Upload(to, y.data(), bytes);
  arrays.x = static_cast<const float*>(from);
  arrays.y = static_cast<float*>(to);
  arrays.count = kCount;
  run(*device, arrays, has_fault);
  device->Download(y.data(), to, bytes);
  std::vector<float> expected(kCount, 0);
  if (is_sum) {
    expected[0] = static_cast<float>(kCount * (kCount + 1) / 2);
  } else {
    for (size_t i = 0; i < x.size(); ++i) expected[i] = 2 * x[i];
  }
  device->Release(from);
  device->Release(to);
  Outcome outcome{y == expected, ""};
  for (const auto& [what, count] : ptx::FindingsSoFar().counts()) outcome.findings += what + "\n";
  ptx::FindingsSoFar() = {};
  return outcome;
}

TEST_CASE("ptx interpreter: faults planted in kernels of nvcc are found") {
  struct Row {
    const char* name;
    Run run;
    bool is_sum;
    const char* finding;
  };
  const char* const outside = "an access outside of allocations";
  const char* const race = "two threads access shared memory with no barrier between them";
  for (const Row& row :
       {Row{"a missing barrier of a warp", SumByWarps, true, race},
        Row{"a captured this", DoubleWithCapturedThis, false, outside},
        Row{"an index off by one", DoubleWithIndexOffByOne, false, outside},
        Row{"a parameter of another size", DoubleWithOtherParameter, false, outside},
        Row{"an unsynchronised read", SumWithUnsynchronisedRead, true, race},
        Row{"vectors that are not aligned", DoubleMisaligned, false, "a misaligned access"},
        Row{"a barrier that not all threads reach", SumWithDivergedBarrier, true,
            "a barrier of the block is not reached by all of its threads"},
        Row{"shared memory that nobody wrote", SumWithUnwrittenShare, true,
            "shared memory is read before it is written"}}) {
    CAPTURE(row.name);
    const Outcome sound = RunPlanted(row.run, row.is_sum, false);
    CHECK(sound.is_right);
    CHECK(sound.findings.empty());
    const Outcome faulty = RunPlanted(row.run, row.is_sum, true);
    CAPTURE(faulty.findings);
    CHECK(faulty.findings.find(row.finding) != std::string::npos);
  }
}

}  // namespace
}  // namespace ckplan::cuda
