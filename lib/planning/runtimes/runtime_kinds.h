// The runtimes whose classes of plans ckplan knows: one row for each, in alphabetical order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

enum class RuntimeKind : uint8_t {
  kCheckpoint,
  kDeepSpeed,
  kMegatron,
  kSac,
  kTorchtitan,
  kTransformers,
};

struct RuntimeKindInfo {
  RuntimeKind kind;
  std::string_view name;     // "sac": what --for takes.
  std::string_view summary;  // What a plan of the class decides.
};

std::span<const RuntimeKindInfo> AllRuntimeKinds();
const RuntimeKindInfo& InfoOf(RuntimeKind kind);
std::vector<std::string> RuntimeKindNames();
// kUsage: there is no such kind; the message lists all.
Result<RuntimeKind> FindRuntimeKind(std::string_view name);

}  // namespace ckplan
