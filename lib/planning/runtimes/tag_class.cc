#include "lib/planning/runtimes/tag_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/runtimes/class_search.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// All sets of up to this many operations are options.
constexpr size_t kAllTagsOf = 5;

// Runs operations, each preceded by reruns of its recomputed inputs.
class TaggedRuns {
 public:
  TaggedRuns(const JointGraph& graph, const std::vector<OpId>& recomputed)
      : graph_(graph), is_missing_(graph.ops().size()) {
    for (const OpId id : recomputed) is_missing_[id] = true;
  }

  std::vector<OpId> Run() && {
    bool is_backward = false;
    for (const OpId id : graph_.ops().ids()) {
      is_backward = is_backward || graph_.op(id).phase == Phase::kBackward;
      if (is_backward) RunAgainFor(id);
      runs_.push_back(id);
    }
    return std::move(runs_);
  }

 private:
  void RunAgainFor(OpId reader) {
    std::vector<OpId> needed;
    std::vector<OpId> open = {reader};
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      for (const ValueId read : graph_.op(id).reads) {
        MarkNeeded(graph_.value(read).producer, needed, open);
        MarkNeeded(graph_.value(graph_.value(read).storage).producer, needed, open);
      }
    }
    std::sort(needed.begin(), needed.end());
    runs_.insert(runs_.end(), needed.begin(), needed.end());
  }

  void MarkNeeded(OpId producer, std::vector<OpId>& needed, std::vector<OpId>& open) {
    if (producer.is_none() || !is_missing_[producer]) return;
    is_missing_[producer] = false;
    needed.push_back(producer);
    open.push_back(producer);
  }

  const JointGraph& graph_;
  IdVector<OpId, bool> is_missing_;
  std::vector<OpId> runs_;
};

// Returns the operations of the block that may be recomputed. Results that later blocks read are
// saved, because almost all of their readers are recomputed somewhere.
std::vector<OpId> FindRecomputable(const JointGraph& graph, const Block& block) {
  const std::vector<OpId>& forward = block.ops.forward;
  const auto is_read_outside = [&](ValueId value) {
    const std::vector<OpId>& readers = graph.value(value).readers;
    return graph.value(value).is_result || std::any_of(readers.begin(), readers.end(), [&](OpId r) {
             return graph.op(r).phase == Phase::kForward &&
                    !std::binary_search(forward.begin(), forward.end(), r);
           });
  };
  std::vector<OpId> found;
  for (const OpId id : forward) {
    const Operation& op = graph.op(id);
    const bool is_result = std::any_of(op.writes.begin(), op.writes.end(), is_read_outside);
    if (op.may_repeat && !IsRandomByType(op.op) && !is_result) found.push_back(id);
  }
  return found;
}

// Creates the options of a unit.
class Options {
 public:
  Options(const JointGraph& graph, std::vector<OpId> candidates)
      : graph_(graph), candidates_(std::move(candidates)), simulator_(graph), live_(graph) {}

  bool CoversAllSubsets() const { return candidates_.size() <= kAllTagsOf; }
  std::vector<std::vector<OpId>> Find() {
    return CoversAllSubsets() ? AllSubsets() : GreedySubsets();
  }

 private:
  struct Effect {
    Cost overhead;
    Bytes live;
  };

  Effect EffectOf(const std::vector<OpId>& recomputed) {
    PollStop();
    const std::vector<OpId> runs = RecomputingRuns(graph_, recomputed);
    return {simulator_.Run(runs).value().overhead, live_.BeforeBackward(runs)};
  }

  std::vector<std::vector<OpId>> AllSubsets() const {
    std::vector<std::vector<OpId>> sets;
    for (size_t set = 0; set < size_t{1} << candidates_.size(); ++set) {
      std::vector<OpId>& recomputed = sets.emplace_back();
      for (size_t i = 0; i < candidates_.size(); ++i) {
        if ((set >> i & 1) != 0) recomputed.push_back(candidates_[i]);
      }
    }
    return sets;
  }

  // True if the backward pass reads the operation's results.
  bool IsSaved(OpId id) const {
    const std::vector<ValueId>& writes = graph_.op(id).writes;
    return std::any_of(writes.begin(), writes.end(), [&](ValueId write) {
      const std::vector<OpId>& readers = graph_.value(write).readers;
      return std::any_of(readers.begin(), readers.end(),
                         [&](OpId r) { return graph_.op(r).phase == Phase::kBackward; });
    });
  }

  // Starts with operations whose results the backward pass does not read: they need not be kept,
  // and run again only for others. Then repeatedly adds the operation that saves the most memory
  // for its time, as long as it saves any.
  std::vector<std::vector<OpId>> GreedySubsets() {
    std::vector<std::vector<OpId>> sets = {{}};
    std::vector<OpId> left = candidates_;
    const auto unread =
        std::stable_partition(left.begin(), left.end(), [&](OpId id) { return IsSaved(id); });
    sets.emplace_back(unread, left.end());
    left.erase(unread, left.end());
    Effect before = EffectOf(sets.back());
    while (true) {
      size_t best = left.size();
      double least = 0;
      Effect after;
      for (size_t i = 0; i < left.size(); ++i) {
        std::vector<OpId> recomputed = sets.back();
        recomputed.push_back(left[i]);
        const Effect effect = EffectOf(recomputed);
        const Bytes saved = before.live - effect.live;
        if (saved <= Bytes(0)) continue;
        const double price = static_cast<double>((effect.overhead - before.overhead).count()) /
                             static_cast<double>(saved.count());
        if (best != left.size() && price >= least) continue;
        best = i;
        least = price;
        after = effect;
      }
      if (best == left.size()) return sets;
      std::vector<OpId> next = sets.back();
      next.push_back(left[best]);
      sets.push_back(std::move(next));
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
      before = after;
    }
  }

  const JointGraph& graph_;
  const std::vector<OpId> candidates_;
  Simulator simulator_;
  LiveBytes live_;
};

// Returns the options of a block equal to `first`, whose options are known.
std::vector<std::vector<OpId>> TranslateOptions(const std::vector<std::vector<OpId>>& options,
                                                const std::vector<OpId>& first,
                                                const std::vector<OpId>& other) {
  std::vector<std::vector<OpId>> translated = options;
  for (std::vector<OpId>& option : translated) {
    for (OpId& id : option) {
      id = other[static_cast<size_t>(std::lower_bound(first.begin(), first.end(), id) -
                                     first.begin())];
    }
  }
  return translated;
}

}  // namespace

std::vector<OpId> RecomputingRuns(const JointGraph& graph, const std::vector<OpId>& recomputed) {
  return TaggedRuns(graph, recomputed).Run();
}

std::vector<OpId> TagClass::RecomputedBy(const Choice& choice) const {
  std::vector<OpId> recomputed;
  for (size_t i = 0; i < units_.size(); ++i) {
    const std::vector<OpId>& of_unit = units_[i].recomputed[static_cast<size_t>(choice[i])];
    recomputed.insert(recomputed.end(), of_unit.begin(), of_unit.end());
  }
  std::sort(recomputed.begin(), recomputed.end());
  return recomputed;
}

bool TagClass::IsComplete() const {
  return std::all_of(units_.begin(), units_.end(),
                     [](const Unit& unit) { return unit.is_complete; });
}

std::vector<OpId> TagClass::RunsOf(const Choice& choice) const {
  return RecomputingRuns(graph_, RecomputedBy(choice));
}

Result<TagClass> MakeTagClass(const JointGraph& graph, const std::vector<Block>& blocks) {
  std::vector<TagClass::Unit> units;
  bool has_options = false;
  for (const Block& block : blocks) {
    if (!block.is_repeated) continue;
    TagClass::Unit unit{block.ops.path, block.ops.forward, {}, block.kind};
    const auto known = std::find_if(units.begin(), units.end(), [&](const TagClass::Unit& each) {
      return each.kind == block.kind && each.recomputed.size() > 1;
    });
    if (known != units.end()) {
      unit.recomputed = TranslateOptions(known->recomputed, known->forward, unit.forward);
      unit.is_complete = known->is_complete;
    } else {
      Options options(graph, FindRecomputable(graph, block));
      unit.recomputed = options.Find();
      unit.is_complete = options.CoversAllSubsets();
    }
    has_options = has_options || unit.recomputed.size() > 1;
    units.push_back(std::move(unit));
  }
  if (!has_options) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("{} has no layers with operations that torchtitan could "
                                 "recompute: a layer is a module in a list, such as layers.0",
                                 graph.name()));
  }
  return TagClass(graph, std::move(units));
}

}  // namespace ckplan
