// Classes of plans that checkpoint regions, one for each runtime that does so.
//
//   checkpoint    a unit for each block: nothing, the block, or a set of its parts
//   sac           a unit for each block: as for checkpoint, or the block with a set of operations
//                 saved
//   transformers  one unit: every n-th repeated block, or none
//   deepspeed     one unit: all repeated blocks, n by n, or none
//   megatron      one unit: all repeated blocks, n by n; the first n, each by itself; or a set of
//                 modules of every repeated block
//
// Sets of saved operations are the best by their cost for a byte, one after another. So the class
// of `sac` has more plans than are searched, unless a block has few operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/class_search.h"
#include "lib/planning/runtimes/region_runs.h"
#include "lib/planning/runtimes/runtime_kinds.h"

namespace ckplan {

// What a runtime with one setting for all layers is set to.
struct RuntimeSetting {
  std::string method;                // Megatron's: "uniform", "block" or "selective".
  int64_t layers = 0;                // Every n-th layer, or n layers; 0 if nothing is recomputed.
  std::vector<std::string> modules;  // Megatron's --recompute-modules.

  bool operator==(const RuntimeSetting&) const = default;
};

// The modules that a region consists of, as the runtime names them.
using ModuleNames = std::vector<std::string>;

class RegionClass : public PlanClass {
 public:
  struct Option {
    std::vector<CheckpointedRegion> regions;
    RuntimeSetting setting = {};
  };
  struct Unit {
    std::vector<Option> options;
    int32_t kind = 0;
    bool is_complete = true;  // It has all options of the runtime.
  };

  RegionClass(RegionRuns runs, std::vector<ModuleNames> modules, std::vector<Unit> units)
      : runs_(std::move(runs)), modules_(std::move(modules)), units_(std::move(units)) {}

  const JointGraph& graph() const override { return runs_.graph(); }
  size_t unit_count() const override { return units_.size(); }
  int32_t OptionCount(size_t unit) const override {
    return static_cast<int32_t>(units_[unit].options.size());
  }
  int32_t KindOf(size_t unit) const override { return units_[unit].kind; }
  bool IsComplete() const override;
  std::vector<OpId> RunsOf(const Choice& choice) const override {
    return runs_.RunsOf(RegionsOf(choice));
  }

  const RegionRuns& runs() const { return runs_; }
  std::vector<CheckpointedRegion> RegionsOf(const Choice& choice) const;
  const ModuleNames& ModulesOf(int32_t region) const {
    return modules_[static_cast<size_t>(region)];
  }
  const Option& OptionOf(size_t unit, const Choice& choice) const {
    return units_[unit].options[static_cast<size_t>(choice[unit])];
  }

 private:
  RegionRuns runs_;
  std::vector<ModuleNames> modules_;  // By region.
  std::vector<Unit> units_;
};

// kUnsupported: the model has nothing that the runtime can checkpoint. `kind` must not be
// kTorchtitan.
Result<RegionClass> MakeRegionClass(const JointGraph& graph, const std::vector<Block>& blocks,
                                    RuntimeKind kind);

}  // namespace ckplan
