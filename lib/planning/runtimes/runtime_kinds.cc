#include "lib/planning/runtimes/runtime_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/check.h"

namespace ckplan {
namespace {

constexpr RuntimeKindInfo kKinds[] = {
    {RuntimeKind::kCheckpoint, "checkpoint",
     "torch.utils.checkpoint: which blocks, or submodules of them, are checkpointed"},
    {RuntimeKind::kDeepSpeed, "deepspeed",
     "DeepSpeed's pipelines: how many layers a checkpoint has"},
    {RuntimeKind::kMegatron, "megatron",
     "Megatron-LM: how many layers are recomputed, or which modules of all layers"},
    {RuntimeKind::kSac, "sac",
     "selective checkpoints: which blocks are checkpointed, and which operations of them are "
     "saved"},
    {RuntimeKind::kTorchtitan, "torchtitan",
     "torchtitan's memory policy: which operations of layers are saved"},
    {RuntimeKind::kTransformers, "transformers",
     "transformers' gradient checkpointing: every n-th layer"},
};

}  // namespace

std::span<const RuntimeKindInfo> AllRuntimeKinds() { return kKinds; }

const RuntimeKindInfo& InfoOf(RuntimeKind kind) {
  for (const RuntimeKindInfo& info : kKinds) {
    if (info.kind == kind) return info;
  }
  CKPLAN_CHECK(false, "every kind has a row");
}

std::vector<std::string> RuntimeKindNames() {
  std::vector<std::string> names;
  for (const RuntimeKindInfo& info : kKinds) names.emplace_back(info.name);
  return names;
}

Result<RuntimeKind> FindRuntimeKind(std::string_view name) {
  for (const RuntimeKindInfo& info : kKinds) {
    if (info.name == name) return info.kind;
  }
  return MakeError(ErrorCode::kUsage, fmt::format("there is no kind {} of runtimes; kinds are {}",
                                                  name, fmt::join(RuntimeKindNames(), ", ")));
}

}  // namespace ckplan
