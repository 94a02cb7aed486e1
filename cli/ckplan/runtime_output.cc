#include "cli/ckplan/runtime_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/diff.h"

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
std::string SavedOperatorsLiteral(const RuntimePlan& plan) {
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

// Returns code that saves the planned calls. `where` ends the comment on how calls are counted.
std::string SavedCallsCode(const RuntimePlan& plan, std::string_view imports,
                           std::string_view where, std::string_view rest) {
  return fmt::format(
      "import collections\n{}\n"
      "# The calls of each operation that are saved, counted from 0 in {}\n{}{}",
      imports, where, SavedOperatorsLiteral(plan), rest);
}

std::string SacCode(const RuntimePlan& plan) {
  return SavedCallsCode(plan,
                        "import functools\n"
                        "from torch.utils.checkpoint import (\n"
                        "    CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts)\n",
                        "a run of the module.", kContexts);
}

std::string TorchtitanCode(const RuntimePlan& plan) {
  return SavedCallsCode(
      plan,
      "from torch.utils.checkpoint import CheckpointPolicy\n"
      "from torchtitan.experiments.graph_trainer.common_utils import _get_module_fqn\n"
      "from torchtitan.experiments.graph_trainer.memory_policy import tag_sac_policy\n"
      "from torchtitan.experiments.graph_trainer.registry import register_memory_policy\n",
      "the layer's forward pass.\n# Choose this policy by --compile.memory_policy ckplan.",
      kMemoryPolicy);
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

namespace {

std::string ModuleText(const PlannedRegion& region) {
  return region.modules.size() == 1
             ? region.modules.front()
             : fmt::format("{} to {}", region.modules.front(), region.modules.back());
}

// "aten.mm.default 2 of 4, aten.gelu.default 1 of 1"
std::string SavedOperatorsText(const PlannedRegion& region) {
  std::vector<std::string> saved;
  for (const Calls& calls : region.saved) {
    saved.push_back(fmt::format("{} {} of {}", calls.op, calls.calls.size(), calls.count));
  }
  return fmt::format("{}", fmt::join(saved, ", "));
}

TextTable RegionsTable(const Plan& plan, const RuntimePlan& found) {
  TextTable table;
  table.columns = {{"module", false, TableColumn::Fit::kElide},
                   {"operations", true},
                   {"run again", true},
                   {"time", true}};
  const bool names_saved =
      found.kind == RuntimeKind::kSac || found.kind == RuntimeKind::kTorchtitan;
  if (names_saved) table.columns.push_back({"saved", false, TableColumn::Fit::kElide});
  for (const PlannedRegion& region : found.regions) {
    std::vector<std::string> row = {ModuleText(region), std::to_string(region.ops),
                                    std::to_string(region.run_again),
                                    SignedPercent(AddedShare(plan, region.overhead))};
    if (names_saved) row.push_back(SavedOperatorsText(region));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string VerdictText(const Plan& plan, const RuntimePlan& found) {
  const std::string_view search =
      found.is_exact ? "of all plans of this kind" : "of the plans of this kind that were tried";
  if (!found.fits) {
    return fmt::format("{}, none fits in {}; the best found needs {} more", search,
                       HumanBytes(found.budget), HumanBytes(found.peak - found.budget));
  }
  const double lost = AddedShare(plan, found.overhead) - StepOverheadRatio(plan.figures);
  return fmt::format(
      "{}, this is the fastest that fits in {}; it changes step time by {} compared with the plan",
      search, HumanBytes(found.budget), SignedPercent(lost));
}

void WriteFigures(JsonWriter& json, std::string_view key, Bytes peak, Cost overhead) {
  json.Key(key).BeginObject(JsonLayout::kInline);
  json.Key("peak_bytes").Amount(peak).Key("overhead_cost").Amount(overhead).End();
}

void WriteSetting(JsonWriter& json, const RuntimePlan& found) {
  json.Key("setting").BeginObject(JsonLayout::kInline);
  json.Key("layers").Integer(found.setting.layers);
  json.Key("method").Text(found.setting.method);
  json.Key("modules").BeginArray(JsonLayout::kInline);
  for (const std::string& module : found.setting.modules) json.Text(module);
  json.End().End();
}

void WriteRegion(JsonWriter& json, const PlannedRegion& region) {
  json.BeginObject(JsonLayout::kInline);
  json.Key("modules").BeginArray(JsonLayout::kInline);
  for (const std::string& module : region.modules) json.Text(module);
  json.End();
  json.Key("operations").Integer(region.ops).Key("run_again").Integer(region.run_again);
  json.Key("overhead_cost").Amount(region.overhead);
  json.Key("saved").BeginArray(JsonLayout::kInline);
  for (const Calls& calls : region.saved) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("op").Text(calls.op);
    json.Key("calls").BeginArray(JsonLayout::kInline);
    for (const int64_t call : calls.calls) json.Integer(call);
    json.End().Key("of").Integer(calls.count).End();
  }
  json.End().End();
}

}  // namespace

double AddedShare(const Plan& plan, Cost overhead) {
  PlanFigures changed = plan.figures;
  changed.overhead = overhead;
  return StepOverheadRatio(changed);
}

TextTable BesidePlanTable(const Plan& plan, std::string heading, Bytes peak, Cost overhead) {
  const PlanFigures& figures = plan.figures;
  TextTable table;
  table.columns = {{""}, {"keep all", true}, {"plan", true}, {std::move(heading), true}};
  table.rows = {
      {"peak", HumanBytes(figures.baseline_peak), HumanBytes(figures.peak), HumanBytes(peak)},
      {"time", SignedPercent(0), SignedPercent(StepOverheadRatio(figures)),
       SignedPercent(AddedShare(plan, overhead))}};
  return table;
}

std::string RuntimePlanText(const Plan& plan, const RuntimePlan& found, const Terminal& terminal) {
  std::string text = fmt::format("{}   {}   for {}\n\n", Printable(plan.model.name, kLongestName),
                                 Printable(plan.request.algorithm), InfoOf(found.kind).name);
  const bool keeps_everything = KeepsEverything(found);
  if (!keeps_everything) {
    text += RegionsTable(plan, found).Text(0, terminal.table_width()) + "\n";
  }
  const std::string_view heading = InfoOf(found.kind).name;
  text += BesidePlanTable(plan, std::string(heading), found.peak, found.overhead)
              .Text(0, terminal.table_width());
  text += "\n" + VerdictText(plan, found) + "\n\n";
  return text + (keeps_everything ? "nothing needs recomputing, so there is nothing to set\n"
                                  : RuntimeSettings(found));
}

std::string RuntimePlanJson(const Plan& plan, const RuntimePlan& found) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("model").Text(plan.model.name);
  json.Key("sha256").Text(plan.model.sha256);
  json.Key("algorithm").Text(plan.request.algorithm);
  json.Key("kind").Text(InfoOf(found.kind).name);
  json.Key("budget_bytes").Amount(found.budget);
  json.Key("fits").Boolean(found.fits);
  json.Key("is_exact").Boolean(found.is_exact);
  json.Key("cost_unit").Text(plan.request.cost_unit);
  json.Key("step_cost").Amount(plan.figures.forward_cost + plan.figures.backward_cost);
  WriteFigures(json, "keep_all", plan.figures.baseline_peak, Cost(0));
  WriteFigures(json, "plan", plan.figures.peak, plan.figures.overhead);
  WriteFigures(json, "runtime", found.peak, found.overhead);
  json.Key("layers").Integer(found.layers);
  WriteSetting(json, found);
  json.Key("regions").BeginArray(JsonLayout::kLines);
  for (const PlannedRegion& region : found.regions) WriteRegion(json, region);
  json.End();
  json.Key("paste").Text(KeepsEverything(found) ? "" : RuntimeSettings(found));
  json.End();
  return std::move(json).Finish();
}

}  // namespace ckplan
