#include "lib/planning/plan/outside.h"

#include <algorithm>
#include <array>

#include "lib/problem/cost/cost_model.h"

namespace ckplan {
namespace {

constexpr int64_t kMiB = 1 << 20;

template <size_t N>
bool BeginsWithOneOf(std::string_view name, const std::array<std::string_view, N>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// The workspace that PyTorch gives cuBLAS. The backward thread may have another.
MemoryLine WorkspaceOfCublas(std::string_view device) {
  // Devices of compute capability 9.0 and above.
  constexpr std::array<std::string_view, 6> kLarge = {"h", "b", "gh", "gb", "rtx5", "rtxpro6"};
  const Bytes bytes(BeginsWithOneOf(device, kLarge) ? 32 * kMiB : 8 * kMiB + kMiB / 8);
  return {"cuBLAS",
          bytes,
          bytes,
          2 * bytes,
          LineKind::kFormula,
          "parseChosenWorkspaceSize of PyTorch's CublasHandlePool.cpp"};
}

// A context with PyTorch's kernels, which CUDA loads lazily.
MemoryLine Context() {
  return {"context",
          Bytes(450 * kMiB),
          Bytes(250 * kMiB),
          Bytes(700 * kMiB),
          LineKind::kAllowance,
          "reports of users: github.com/pytorch/pytorch/issues/107667, 20532, 28113"};
}

// Memory that the driver withholds from programs. PyTorch's messages report a total capacity of
// 39.25 to 39.56 GiB on an A100 with 40 GB, 79.14 to 79.33 GiB on cards with 80 GB, and 14.75 GiB
// on a T4 with 16 GB, whose error correction takes a sixteenth.
MemoryLine DriverMemory(std::string_view device, Bytes memory) {
  constexpr std::array<std::string_view, 4> kCorrectErrorsInMemory = {"t4", "a10-", "l4", "rtxpro"};
  const bool corrects = BeginsWithOneOf(device, kCorrectErrorsInMemory);
  const auto part = [&](int64_t divisor) { return Bytes(memory.count() / divisor); };
  return {"driver",
          part(corrects ? 16 : 100),
          part(128),
          part(corrects ? 12 : 50),
          LineKind::kAllowance,
          "\"total capacity\" in PyTorch's messages"};
}

std::string DeviceOf(const PlanRequest& request) {
  if (!request.memory.device.empty()) return request.memory.device;
  const Result<CostModel> cost = ParseCostModel(request.cost_model);
  const bool is_named = cost.ok() && cost->kind == CostKind::kFlops;
  return is_named ? cost->device.name : std::string(kDefaultDevice);
}

}  // namespace

std::string_view NameOf(LineKind kind) {
  constexpr std::string_view kNames[] = {"exact", "formula", "allowance"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<MemoryLine> OutsideOf(std::string_view device, Bytes memory) {
  return {WorkspaceOfCublas(device), Context(), DriverMemory(device, memory)};
}

std::vector<MemoryLine> OutsideOf(const PlanRequest& request) {
  std::vector<MemoryLine> lines = OutsideOf(DeviceOf(request), request.memory.bytes);
  if (!request.memory.device.empty()) return lines;
  lines.back() = {"driver", Bytes(0),         Bytes(0),
                  Bytes(0), LineKind::kExact, "the memory is what programs get"};
  return lines;
}

Bytes OutsideInMemory(const PlanRequest& request) {
  if (request.reserve) return *request.reserve;
  Bytes bytes(0);
  for (const MemoryLine& line : OutsideOf(request)) bytes += line.bytes;
  return bytes;
}

}  // namespace ckplan
