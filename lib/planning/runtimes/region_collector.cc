#include "lib/planning/runtimes/region_collector.h"

#include <algorithm>
#include <iterator>

namespace ckplan {

namespace {

// Whether the operation must not run twice, and only what the step returns depends on it.
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
