#include "cli/ckplan/runtime_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr std::string_view kCheckpointImports =
    "import functools\n"
    "from torch.utils.checkpoint import checkpoint\n"
    "\n";

constexpr std::string_view kContexts = R"(
def contexts(saved):
    calls = collections.Counter()

    def policy(context, operator, *args, **kwargs):
        call = context.is_recompute, str(operator)
        calls[call] += 1
        is_saved = calls[call] - 1 in saved.get(str(operator), ())
        return CheckpointPolicy.MUST_SAVE if is_saved else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)

for path, saved in SAVED.items():
    module = model.get_submodule(path)
    module.forward = functools.partial(
        checkpoint, module.forward, use_reentrant=False,
        context_fn=functools.partial(contexts, saved))
)";

constexpr std::string_view kMemoryPolicy = R"(
@register_memory_policy("ckplan")
def ckplan_policy(gm, *, config):
    calls = collections.Counter()

    def policy(node):
        layer = next((path for path in SAVED if f"{_get_module_fqn(node)}.".startswith(f"{path}.")), None)
        if layer is None:
            return CheckpointPolicy.MUST_SAVE
        call = layer, str(node.target)
        calls[call] += 1
        is_saved = calls[call] - 1 in SAVED[layer].get(str(node.target), ())
        return CheckpointPolicy.MUST_SAVE if is_saved else CheckpointPolicy.MUST_RECOMPUTE

    return tag_sac_policy(gm, policy_fn=policy)
)";

// Quotes a name as Python, JSON and shells do. Names come from files.
std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : Printable(name)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// {"layers.0": {"aten.mm.default": [0, 2]}, ...}, a line for each module.
std::string SavedTable(const RuntimePlan& plan) {
  std::string text = "SAVED = {\n";
  for (const PlannedRegion& region : plan.regions) {
    std::vector<std::string> rows;
    for (const Calls& calls : region.saved) {
      rows.push_back(fmt::format("{}: [{}]", Quoted(calls.op), fmt::join(calls.calls, ", ")));
    }
    text += fmt::format("    {}: {{{}}},\n", Quoted(region.modules.front()), fmt::join(rows, ", "));
  }
  return text + "}\n";
}

std::string CheckpointCode(const RuntimePlan& plan) {
  std::string text(kCheckpointImports);
  text += "for path in [\n";
  for (const PlannedRegion& region : plan.regions) {
    text += fmt::format("    {},\n", Quoted(region.modules.front()));
  }
  return text +
         "]:\n"
         "    module = model.get_submodule(path)\n"
         "    module.forward = functools.partial(checkpoint, module.forward, "
         "use_reentrant=False)\n";
}

std::string SacCode(const RuntimePlan& plan) {
  return "import collections\n"
         "import functools\n"
         "from torch.utils.checkpoint import (\n"
         "    CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts)\n"
         "\n"
         "# The calls of each operation that are saved, counted from 0 in a run of the module.\n" +
         SavedTable(plan) + std::string(kContexts);
}

std::string TorchtitanCode(const RuntimePlan& plan) {
  return "import collections\n"
         "from torch.utils.checkpoint import CheckpointPolicy\n"
         "from torchtitan.experiments.graph_trainer.common_utils import _get_module_fqn\n"
         "from torchtitan.experiments.graph_trainer.memory_policy import tag_sac_policy\n"
         "from torchtitan.experiments.graph_trainer.registry import register_memory_policy\n"
         "\n"
         "# The calls of each operation that are saved, counted from 0 in the layer's forward "
         "pass.\n"
         "# Choose this policy by --compile.memory_policy ckplan.\n" +
         SavedTable(plan) + std::string(kMemoryPolicy);
}

std::string TransformersCode(const RuntimePlan& plan) {
  const std::string every =
      plan.setting.layers == 1 ? "" : fmt::format(", \"every_n_layers\": {}", plan.setting.layers);
  return fmt::format(
      "TrainingArguments(\n"
      "    gradient_checkpointing=True,\n"
      "    gradient_checkpointing_kwargs={{\"use_reentrant\": False{}}})\n",
      every);
}

std::string MegatronFlags(const RuntimeSetting& setting) {
  if (setting.method == "selective") {
    return fmt::format("--recompute-granularity selective --recompute-modules {}\n",
                       fmt::join(setting.modules, " "));
  }
  return fmt::format(
      "--recompute-granularity full --recompute-method {} --recompute-num-layers {}\n",
      setting.method, setting.layers);
}

std::string DeepSpeedConfig(const RuntimePlan& plan) {
  return fmt::format(
      "{{\n"
      "  \"pipeline\": {{\"activation_checkpoint_interval\": {}}},\n"
      "  \"activation_checkpointing\": {{\"number_checkpoints\": {}}}\n"
      "}}\n",
      plan.setting.layers, plan.regions.size());
}

}  // namespace

bool KeepsEverything(const RuntimePlan& plan) {
  return std::all_of(plan.regions.begin(), plan.regions.end(),
                     [](const PlannedRegion& region) { return region.run_again == 0; });
}

std::string RuntimeSettings(const RuntimePlan& plan) {
  switch (plan.kind) {
    case RuntimeKind::kCheckpoint:
      return CheckpointCode(plan);
    case RuntimeKind::kDeepSpeed:
      return DeepSpeedConfig(plan);
    case RuntimeKind::kMegatron:
      return MegatronFlags(plan.setting);
    case RuntimeKind::kSac:
      return SacCode(plan);
    case RuntimeKind::kTorchtitan:
      return TorchtitanCode(plan);
    case RuntimeKind::kTransformers:
      return TransformersCode(plan);
  }
  return "";
}

}  // namespace ckplan
