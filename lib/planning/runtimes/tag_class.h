// The class of plans of torchtitan's memory policy: tags on the forward operations of one graph of
// the whole step.
//
// Each operation is tagged as saved or recomputed. When a backward operation first reads a result
// of a recomputed operation, that operation runs again just before, together with the recomputed
// operations that it reads, in forward order. Later readers use the same result, and operations
// that nothing needs do not run again:
//
//   a → b → c → d      b and c recomputed:      a b c d   loss   d'  b c  c' b' a'
//
// torchtitan saves what it can't or does not recompute, and so does every plan of the class:
// operations outside the layers, random ones, those that must not run twice, and those whose
// results are read by a recomputed operation of a later layer.
//
// Each layer is a unit. Its options are sets of operations to recompute, built greedily by memory
// saved per time.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/class_search.h"

namespace ckplan {

class TagClass : public PlanClass {
 public:
  struct Unit {
    std::string path;
    std::vector<OpId> forward;
    std::vector<std::vector<OpId>> recomputed;  // By option.
    int32_t kind = 0;
    bool is_complete = true;  // Has all options of the runtime.
  };

  TagClass(const JointGraph& graph, std::vector<Unit> units)
      : graph_(graph), units_(std::move(units)) {}

  const JointGraph& graph() const override { return graph_; }
  size_t unit_count() const override { return units_.size(); }
  int32_t OptionCount(size_t unit) const override {
    return static_cast<int32_t>(units_[unit].recomputed.size());
  }
  int32_t KindOf(size_t unit) const override { return units_[unit].kind; }
  bool IsComplete() const override;
  std::vector<OpId> RunsOf(const Choice& choice) const override;

  const Unit& unit(size_t index) const { return units_[index]; }
  // The recomputed operations, in the order of the graph.
  std::vector<OpId> RecomputedBy(const Choice& choice) const;

 private:
  const JointGraph& graph_;
  std::vector<Unit> units_;
};

// Returns the runs in which these forward operations are recomputed. O(operations).
std::vector<OpId> RecomputingRuns(const JointGraph& graph, const std::vector<OpId>& recomputed);

// Fails with kUnsupported if no operation of a layer can be recomputed. The graph must outlive the
// class.
Result<TagClass> MakeTagClass(const JointGraph& graph, const std::vector<Block>& blocks);

}  // namespace ckplan
