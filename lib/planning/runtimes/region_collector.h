// Collects the regions of a class of plans while its options are made.
#pragma once

#include <utility>
#include <vector>

#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/region_class.h"
#include "lib/planning/runtimes/region_runs.h"

namespace ckplan {

// Regions are without operations that only update what outlives the step, such as the number of
// batches that a BatchNorm has seen: in eager mode these write in place, and make no memory.
class RegionCollector {
 public:
  explicit RegionCollector(const JointGraph& graph) : graph_(graph) {}

  // Adds the region of these modules and returns its number. Returns -1 if it cannot be
  // checkpointed, because it has no forward operations or one that must not run twice.
  int32_t Add(const std::vector<const ModuleOps*>& modules, Rerun rerun,
              const std::vector<OpId>& readers_backward = {});
  // Does the same for a region whose operations can be saved, so that they may be of any kind.
  int32_t AddToSave(const std::vector<const ModuleOps*>& modules, Rerun rerun,
                    const std::vector<OpId>& readers_backward = {});
  // Returns the option that checkpoints the blocks in chunks of `size`; without regions if one of
  // them cannot be checkpointed.
  RegionClass::Option Chunks(const std::vector<const Block*>& blocks, size_t size);

  RegionClass ClassOf(std::vector<RegionClass::Unit> units) &&;

  const JointGraph& graph() const { return graph_; }
  const std::vector<OpRegion>& regions() const { return regions_; }

 private:
  const JointGraph& graph_;
  std::vector<OpRegion> regions_;
  std::vector<ModuleNames> names_;
};

}  // namespace ckplan
