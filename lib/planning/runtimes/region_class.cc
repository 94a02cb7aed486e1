#include "lib/planning/runtimes/region_class.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/check.h"
#include "lib/planning/runtimes/megatron_options.h"

namespace ckplan {

namespace {

constexpr RuntimeKindInfo kKinds[] = {
    {RuntimeKind::kCheckpoint, "checkpoint",
     "torch.utils.checkpoint: which blocks or submodules are checkpointed"},
    {RuntimeKind::kDeepSpeed, "deepspeed",
     "DeepSpeed pipelines: how many layers each checkpoint covers"},
    {RuntimeKind::kMegatron, "megatron",
     "Megatron-LM: how many layers are recomputed, or which modules of all layers"},
    {RuntimeKind::kSac, "sac",
     "selective checkpoints: which blocks are checkpointed, and which of their operations are "
     "saved"},
    {RuntimeKind::kTorchtitan, "torchtitan",
     "torchtitan's memory policy: which operations in layers are saved"},
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
  return MakeError(ErrorCode::kUsage, fmt::format("unknown runtime {}; use one of {}", name,
                                                  fmt::join(RuntimeKindNames(), ", ")));
}

namespace {

// All sets of up to this many parts, or operations to save, are options. With more, each is an
// option by itself, or only the kSavedSets best.
constexpr size_t kAllSubsetsOf = 4;
constexpr size_t kAllSavesOf = 5;
constexpr size_t kSavedSets = 24;

using Option = RegionClass::Option;
using Unit = RegionClass::Unit;
using Regions = RegionCollector;

std::vector<const Block*> FindRepeatedBlocks(const std::vector<Block>& blocks) {
  std::vector<const Block*> repeated;
  for (const Block& block : blocks) {
    if (block.is_repeated) repeated.push_back(&block);
  }
  return repeated;
}

// Adds options that checkpoint a set of the block's parts, each as a region.
void AddPartOptions(const Block& block, Regions& regions, Unit& unit) {
  std::vector<int32_t> parts;
  for (const ModuleOps& part : block.parts) {
    const int32_t region = regions.Add({&part}, Rerun::kUpToLastSaved);
    if (region >= 0) parts.push_back(region);
  }
  const bool takes_all = parts.size() <= kAllSubsetsOf;
  unit.is_complete = takes_all;
  for (size_t set = 1; set < (takes_all ? size_t{1} << parts.size() : parts.size() + 1); ++set) {
    Option option;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_in = takes_all ? (set >> i & 1) != 0 : set == i + 1;
      if (is_in) option.regions.push_back({parts[i], {}});
    }
    unit.options.push_back(std::move(option));
  }
}

std::vector<Unit> CheckpointUnits(const std::vector<Block>& blocks, Regions& regions) {
  std::vector<Unit> units;
  for (const Block& block : blocks) {
    Unit unit{{Option{}}, block.kind};
    const int32_t region = regions.Add({&block.ops}, Rerun::kUpToLastSaved);
    if (region >= 0) unit.options.push_back({{{region, {}}}});
    AddPartOptions(block, regions, unit);
    if (unit.options.size() > 1) units.push_back(std::move(unit));
  }
  return units;
}

// Operators that exist only in traced graphs, where eager mode runs others, can't be named.
bool HasNameInEagerMode(const Operation& op) {
  return op.op.find("_functional") == std::string::npos;
}

// The operations of a region that a selective checkpoint may save.
struct Savable {
  std::vector<bool> always;       // By position: operations that must not run twice.
  std::vector<size_t> positions;  // The others, by decreasing cost per byte.
};

Savable FindSavable(const RegionRuns& runs, int32_t region) {
  const JointGraph& graph = runs.graph();
  const std::vector<OpId>& forward = runs.region(region).forward;
  Savable savable{std::vector<bool>(forward.size()), {}};
  std::vector<std::pair<double, size_t>> by_price;  // Bytes per unit of cost, and position.
  for (size_t i = 0; i < runs.RunAgainCount(region); ++i) {
    const Operation& op = graph.op(forward[i]);
    savable.always[i] = !op.may_repeat;
    const bool is_useful = runs.IsReadAgain(region, i) && op.cost > Cost(0);
    if (!op.may_repeat || !is_useful || !HasNameInEagerMode(op)) continue;
    Bytes bytes;
    for (const ValueId write : op.writes) bytes += graph.counted_bytes(write);
    by_price.emplace_back(static_cast<double>(bytes.count()) / static_cast<double>(op.cost.count()),
                          i);
  }
  std::sort(by_price.begin(), by_price.end());
  for (const auto& [price, position] : by_price) savable.positions.push_back(position);
  return savable;
}

// Returns all sets of operations to save, or the best ones if there are too many.
std::vector<std::vector<bool>> ListSavedSets(const Savable& savable, bool takes_all) {
  const size_t count = savable.positions.size();
  const size_t best = std::min(count, kSavedSets);
  std::vector<std::vector<bool>> sets = {savable.always};
  for (size_t set = 1; set < (takes_all ? size_t{1} << count : best + 1); ++set) {
    sets.push_back(savable.always);
    for (size_t i = 0; i < count; ++i) {
      const bool is_in = takes_all ? (set >> i & 1) != 0 : i < count * set / best;
      if (is_in) sets.back()[savable.positions[i]] = true;
    }
  }
  return sets;
}

std::vector<Unit> SacUnits(const std::vector<Block>& blocks, Regions& regions) {
  std::vector<Unit> units;
  std::vector<int32_t> wholes;  // The region of each whole block.
  for (const Block& block : blocks) {
    const int32_t region = regions.AddToSave({&block.ops}, Rerun::kUpToLastSaved);
    if (region < 0) continue;
    wholes.push_back(region);
    units.push_back({{Option{}}, block.kind});
    AddPartOptions(block, regions, units.back());
  }
  const RegionRuns runs(regions.graph(), regions.regions());
  for (size_t i = 0; i < units.size(); ++i) {
    const Savable savable = FindSavable(runs, wholes[i]);
    const bool takes_all = savable.positions.size() <= kAllSavesOf;
    units[i].is_complete = units[i].is_complete && takes_all;
    for (std::vector<bool>& saved : ListSavedSets(savable, takes_all)) {
      units[i].options.push_back({{{wholes[i], std::move(saved)}}});
    }
  }
  return units;
}

Unit TransformersUnit(const std::vector<const Block*>& blocks, Regions& regions) {
  std::vector<int32_t> each;
  for (const Block* block : blocks)
    each.push_back(regions.Add({&block->ops}, Rerun::kUpToLastSaved));
  Unit unit{{Option{}}, 0};
  for (size_t n = blocks.size(); n >= 1; --n) {
    Option option;
    bool is_possible = true;
    for (size_t i = 0; i < blocks.size(); i += n) {
      is_possible = is_possible && each[i] >= 0;
      option.regions.push_back({each[i], {}});
    }
    option.setting.layers = static_cast<int64_t>(n);
    if (is_possible) unit.options.push_back(std::move(option));
  }
  return unit;
}

Unit DeepSpeedUnit(const std::vector<const Block*>& blocks, Regions& regions) {
  Unit unit{{Option{}}, 0};
  for (size_t n = 1; n <= blocks.size(); ++n) {
    Option option = regions.Chunks(blocks, n);
    if (!option.regions.empty()) unit.options.push_back(std::move(option));
  }
  return unit;
}

Unit UniformUnit(const std::vector<const Block*>& blocks, RuntimeKind kind, Regions& regions) {
  if (kind == RuntimeKind::kMegatron) return MegatronUnit(blocks, regions);
  return kind == RuntimeKind::kDeepSpeed ? DeepSpeedUnit(blocks, regions)
                                         : TransformersUnit(blocks, regions);
}

std::vector<Unit> UnitsOf(const std::vector<Block>& blocks, RuntimeKind kind, Regions& regions) {
  if (kind == RuntimeKind::kCheckpoint) return CheckpointUnits(blocks, regions);
  if (kind == RuntimeKind::kSac) return SacUnits(blocks, regions);
  const std::vector<const Block*> repeated = FindRepeatedBlocks(blocks);
  std::vector<Unit> units;
  if (!repeated.empty()) units.push_back(UniformUnit(repeated, kind, regions));
  return units;
}

}  // namespace

bool RegionClass::IsComplete() const {
  return std::all_of(units_.begin(), units_.end(),
                     [](const Unit& unit) { return unit.is_complete; });
}

std::vector<CheckpointedRegion> RegionClass::RegionsOf(const Choice& choice) const {
  std::vector<CheckpointedRegion> regions;
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    const Option& option = OptionOf(unit, choice);
    regions.insert(regions.end(), option.regions.begin(), option.regions.end());
  }
  return regions;
}

Result<RegionClass> MakeRegionClass(const JointGraph& graph, const std::vector<Block>& blocks,
                                    RuntimeKind kind) {
  RegionCollector regions(graph);
  std::vector<Unit> units = UnitsOf(blocks, kind, regions);
  const bool has_options = std::any_of(units.begin(), units.end(),
                                       [](const Unit& unit) { return unit.options.size() > 1; });
  if (!has_options) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("{} has no layers that {} could recompute: a layer is a module in a list, such "
                    "as layers.0, without operations that must not run twice",
                    graph.name(), InfoOf(kind).name));
  }
  return std::move(regions).ClassOf(std::move(units));
}

namespace {

// True if the operation must not run twice and only the step's results depend on it.
bool IsUpdate(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  if (op.may_repeat) return false;
  return std::all_of(op.writes.begin(), op.writes.end(), [&](ValueId write) {
    const std::vector<OpId>& readers = graph.value(write).readers;
    return std::all_of(readers.begin(), readers.end(),
                       [&](OpId reader) { return IsBetweenPasses(graph.op(reader)); });
  });
}

}  // namespace

int32_t RegionCollector::Add(const std::vector<const ModuleOps*>& modules, Rerun rerun,
                             const std::vector<OpId>& readers_backward) {
  for (const ModuleOps* module : modules) {
    for (const OpId id : module->forward) {
      if (!graph_.op(id).may_repeat && !IsUpdate(graph_, id)) return -1;
    }
  }
  return AddToSave(modules, rerun, readers_backward);
}

int32_t RegionCollector::AddToSave(const std::vector<const ModuleOps*>& modules, Rerun rerun,
                                   const std::vector<OpId>& readers_backward) {
  OpRegion region{{}, {}, rerun, readers_backward};
  ModuleNames names;
  for (const ModuleOps* module : modules) {
    std::copy_if(module->forward.begin(), module->forward.end(), std::back_inserter(region.forward),
                 [&](OpId id) { return !IsUpdate(graph_, id); });
    region.backward.insert(region.backward.end(), module->backward.begin(), module->backward.end());
    names.push_back(module->path);
  }
  if (region.forward.empty()) return -1;
  std::sort(region.forward.begin(), region.forward.end());
  std::sort(region.backward.begin(), region.backward.end());
  regions_.push_back(std::move(region));
  names_.push_back(std::move(names));
  return static_cast<int32_t>(regions_.size()) - 1;
}

RegionClass::Option RegionCollector::Chunks(const std::vector<const Block*>& blocks, size_t size) {
  RegionClass::Option option;
  for (size_t begin = 0; begin < blocks.size(); begin += size) {
    std::vector<const ModuleOps*> chunk;
    for (size_t i = begin; i < std::min(begin + size, blocks.size()); ++i) {
      chunk.push_back(&blocks[i]->ops);
    }
    const int32_t region = Add(chunk, Rerun::kWhole);
    if (region < 0) return {};
    option.regions.push_back({region, {}});
  }
  option.setting.layers = static_cast<int64_t>(size);
  return option;
}

RegionClass RegionCollector::ClassOf(std::vector<RegionClass::Unit> units) && {
  return RegionClass(RegionRuns(graph_, std::move(regions_)), std::move(names_), std::move(units));
}

}  // namespace ckplan
