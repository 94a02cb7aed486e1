// Classes of plans that checkpoint regions, one for each runtime that does so.
//
//   checkpoint    a unit per block: nothing, the block, or a set of its parts
//   sac           a unit per block: as for checkpoint, or the block with a set of saved operations
//   transformers  one unit: every n-th repeated block, or none
//   deepspeed     one unit: all repeated blocks in chunks of n, or none
//   megatron      one unit: all repeated blocks in chunks of n; the first n, each by itself; or a
//                 set of modules of every repeated block
//
// Sets of saved operations are built greedily by cost per byte, so `sac` has more plans than are
// searched unless blocks have few operations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/class_search.h"
#include "lib/planning/runtimes/region_runs.h"

namespace ckplan {

// The runtimes with a class of plans: one row each, in alphabetical order.
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
  std::string_view name;     // "sac": the value of --for.
  std::string_view summary;  // What a plan decides.
};

std::span<const RuntimeKindInfo> AllRuntimeKinds();
const RuntimeKindInfo& InfoOf(RuntimeKind kind);
std::vector<std::string> RuntimeKindNames();
// Fails with kUsage if the kind is unknown. The message lists all.
Result<RuntimeKind> FindRuntimeKind(std::string_view name);

// The setting of a runtime with one setting for all layers.
struct RuntimeSetting {
  std::string method;                // Megatron's: "uniform", "block" or "selective".
  int64_t layers = 0;                // Every n-th layer, or n layers; 0 if nothing is recomputed.
  std::vector<std::string> modules;  // Megatron's --recompute-modules.

  bool operator==(const RuntimeSetting&) const = default;
};

// The modules of a region, as the runtime names them.
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
    bool is_complete = true;  // Has all options of the runtime.
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

// Fails with kUnsupported if the model has nothing that the runtime can checkpoint. `kind` must not
// be kTorchtitan.
Result<RegionClass> MakeRegionClass(const JointGraph& graph, const std::vector<Block>& blocks,
                                    RuntimeKind kind);

// Collects the regions of a class of plans while creating its options.

// Regions exclude operations that only update state between steps, such as BatchNorm's number of
// batches: in eager mode these write in place and allocate nothing.
class RegionCollector {
 public:
  explicit RegionCollector(const JointGraph& graph) : graph_(graph) {}

  // Adds the region of these modules and returns its number, or -1 if it can't be checkpointed
  // because it has no forward operations or one that must not run twice.
  int32_t Add(const std::vector<const ModuleOps*>& modules, Rerun rerun,
              const std::vector<OpId>& readers_backward = {});
  // The same for a region whose operations can be saved, so that all are allowed.
  int32_t AddToSave(const std::vector<const ModuleOps*>& modules, Rerun rerun,
                    const std::vector<OpId>& readers_backward = {});
  // Returns the option that checkpoints the blocks in chunks of `size`; without regions if a chunk
  // can't be checkpointed.
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
