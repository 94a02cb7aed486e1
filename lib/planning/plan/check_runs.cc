#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/units.h"
#include "lib/planning/plan/check_replay.h"
#include "lib/planning/plan/slab.h"

namespace ckplan {
namespace {

bool IsGradientOfParameters(ValueKind kind) {
  return kind == ValueKind::kParameterGradient || kind == ValueKind::kArrivingGradient;
}

// True if values of this kind count in the peak when an operation produces them.
bool Counts(ValueKind kind) {
  return kind == ValueKind::kValue || kind == ValueKind::kArrivingGradient;
}

// Replays runs one at a time and stops at the first fault, because later faults may follow from it.
class RunsReplay {
 public:
  // Keeps references to all but the options.
  RunsReplay(const JointGraph& graph, const std::vector<Step>& steps, const Moves& moves,
             const ReplayOptions& options)
      : graph_(graph),
        steps_(steps),
        moves_(moves),
        slab_(options.offsets, options.alignment),
        run_count_(graph.ops().size()),
        may_replace_(graph.values().size()),
        last_death_(graph.values().size()) {
    for (const Operation& op : graph.ops()) {
      for (const auto& [to, from] : op.in_place) may_replace_[to].push_back(from);
    }
  }

  std::optional<std::string> Run() {
    if (auto fault = CountRuns()) return fault;
    FindDeaths();
    for (size_t k = 0; k < steps_.size(); ++k) {
      PollStop();
      const Bytes highest = slab_.highest();
      for (const ValueId v : dying_[k]) last_death_[v] = k;
      if (IsRun(k)) RunStep(k);
      if (!moves_.back[k].empty()) BringBack(moves_.back[k]);
      for (const ValueId v : dying_[k]) Drop(v);
      if (slab_.fault()) return fmt::format("step {}: {}", k, *slab_.fault());
      if (slab_.highest() > highest) peak_step_ = static_cast<int32_t>(k);
    }
    return std::nullopt;
  }

  const Slab& slab() const { return slab_; }
  int32_t peak_step() const { return peak_step_; }
  Cost cost() const { return cost_; }
  const IdVector<OpId, int32_t>& run_count() const { return run_count_; }

 private:
  bool IsRun(size_t k) const { return steps_[k].kind == StepKind::kRun; }
  const Operation& OperationAt(size_t k) const { return graph_.op(steps_[k].node()); }

  // The values that the step produces and reads. A copy to the host and a drop read their value.
  const std::vector<ValueId>& WrittenAt(size_t k) const {
    return IsRun(k) ? OperationAt(k).writes : moves_.back[k];
  }
  std::vector<ValueId> ReadAt(size_t k) const {
    if (IsRun(k)) return OperationAt(k).reads;
    if (steps_[k].kind == StepKind::kIn) return {};
    return {steps_[k].tensor()};
  }

  bool HasProducer(ValueId v) const { return !graph_.value(v).producer.is_none(); }

  const Value& StorageOf(ValueId v) const { return graph_.value(graph_.value(v).storage); }

  // True if the value, or the value whose memory it shares, counts in the peak.
  bool HasMemory(ValueId v) const {
    const Value& storage = StorageOf(v);
    return !storage.producer.is_none() && Counts(storage.kind);
  }

  // Checks everything except memory.
  std::optional<std::string> CountRuns() {
    for (size_t k = 0; k < steps_.size(); ++k) {
      PollStop();
      if (!IsRun(k)) continue;
      const Operation& op = OperationAt(k);
      for (const ValueId read : op.reads) {
        if (HasProducer(read) && run_count_[graph_.value(read).producer] == 0) {
          return fmt::format("step {}: \"{}\" reads \"{}\", which has not been computed", k,
                             op.name, graph_.value(read).name);
        }
      }
      if (++run_count_[steps_[k].node()] > 1 && !op.may_repeat) {
        return fmt::format("step {}: \"{}\" must not run twice", k, op.name);
      }
      const auto sum = CheckedAdd(cost_.count(), op.cost.count());
      if (!sum) return "the sum of the costs of all runs overflows";
      cost_ = Cost(*sum);
    }
    for (const Operation& op : graph_.ops()) {
      for (const ValueId write : op.writes) {
        const Value& value = graph_.value(write);
        const bool is_wanted = value.is_result || IsGradientOfParameters(value.kind);
        if (is_wanted && run_count_[value.producer] == 0) {
          return fmt::format("\"{}\" never runs, but it produces \"{}\"", op.name, value.name);
        }
      }
    }
    return std::nullopt;
  }

  // Scans the steps backwards: the first read it meets is the last read of the version produced
  // before.
  void FindDeaths() {
    dying_.resize(steps_.size());
    std::map<ValueId, size_t> wanted_at;
    for (const ValueId result : graph_.results()) wanted_at[result] = steps_.size();
    for (const ValueId v : graph_.values().ids()) {
      if (graph_.value(v).kind == ValueKind::kArrivingGradient) wanted_at[v] = steps_.size();
    }
    for (size_t k = steps_.size(); k-- > 0;) {
      PollStop();
      for (const ValueId write : WrittenAt(k)) {
        const auto wish = wanted_at.find(write);
        const size_t death = wish == wanted_at.end() ? k : wish->second;
        if (wish != wanted_at.end()) wanted_at.erase(wish);
        if (death < steps_.size() && HasMemory(write)) dying_[death].push_back(write);
      }
      for (const ValueId read : ReadAt(k)) wanted_at.emplace(read, k);
    }
  }

  void RunStep(size_t k) {
    const Operation& op = OperationAt(k);
    std::vector<ValueId> with_memory_of_their_own;
    for (const ValueId write : op.writes) {
      if (!HasMemory(write)) continue;
      const ValueId base = graph_.value(write).alias_of;
      const std::optional<int> block =
          base.is_none() ? FindReusableBlock(write, k) : std::optional(block_of_.at(base));
      if (!block) {
        with_memory_of_their_own.push_back(write);
        continue;
      }
      slab_.HandOver(*block, write);
      Hold(write, *block);
    }
    for (const ValueId write : with_memory_of_their_own) {
      const Value& value = graph_.value(write);
      Hold(write, slab_.Allocate(LiveBuffer::Tensor(write, value.bytes), "\"" + value.name + "\""));
    }
    if (op.workspace > Bytes(0)) {
      slab_.Release(slab_.Allocate(LiveBuffer::Workspace(steps_[k].node(), op.workspace),
                                   "the workspace of \"" + op.name + "\""));
    }
  }

  // Allocates the first value and puts the others in its memory.
  void BringBack(const std::vector<ValueId>& values) {
    const Value& value = graph_.value(values.front());
    const int block =
        slab_.Allocate(LiveBuffer::Tensor(values.front(), value.bytes), "\"" + value.name + "\"");
    for (const ValueId back : values) Hold(back, block);
  }

  // Returns the block of a read that ends here and has the block to itself, if `write` may reuse
  // it.
  std::optional<int> FindReusableBlock(ValueId write, size_t k) const {
    for (const ValueId from : may_replace_[write]) {
      if (!HasMemory(from) || last_death_[from] != k) continue;
      const int block = block_of_.at(from);
      if (holders_.at(block) == 1 && StorageOf(from).bytes == graph_.value(write).bytes)
        return block;
    }
    return std::nullopt;
  }

  void Hold(ValueId v, int block) {
    block_of_[v] = block;
    ++holders_[block];
  }

  void Drop(ValueId v) {
    const int block = block_of_.at(v);
    block_of_.erase(v);
    if (--holders_.at(block) > 0) return;
    holders_.erase(block);
    slab_.Release(block);
  }

  const JointGraph& graph_;
  const std::vector<Step>& steps_;
  const Moves& moves_;
  Slab slab_;
  IdVector<OpId, int32_t> run_count_;
  IdVector<ValueId, std::vector<ValueId>> may_replace_;  // Reads whose memory a write may reuse.
  std::vector<std::vector<ValueId>> dying_;              // By step.
  IdVector<ValueId, std::optional<size_t>> last_death_;  // The last step so far that released it.
  std::map<ValueId, int> block_of_;                      // The block of each value in memory.
  std::map<int, int> holders_;                           // The number of values in each block.
  int32_t peak_step_ = 0;
  Cost cost_;
};

// Checks that all steps are allowed in joint graphs and name existing operations.
Result<Done> CheckSteps(const JointGraph& graph, const Schedule& schedule) {
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const bool is_move =
        step.kind == StepKind::kOut || step.kind == StepKind::kDrop || step.kind == StepKind::kIn;
    if (step.kind != StepKind::kRun && !is_move) {
      return MakeError(ErrorCode::kCheckFailed,
                       fmt::format("step {} is not allowed in a joint graph", k));
    }
    if (!is_move && static_cast<size_t>(step.index) >= graph.ops().size()) {
      return MakeError(ErrorCode::kCheckFailed,
                       fmt::format("step {}: the graph has no operation number {}", k, step.index));
    }
  }
  return Done{};
}

// True if operations first run in the graph's order.
bool AreInOwnOrder(const JointGraph& graph, const Schedule& schedule) {
  IdVector<OpId, bool> has_run(graph.ops().size());
  OpId last(0);
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::kRun) continue;
    const OpId op = step.node();
    if (has_run[op]) continue;
    has_run[op] = true;
    if (op < last) return false;
    last = op;
  }
  return true;
}

}  // namespace

Result<Replayed> ReplayRuns(const JointGraph& graph, const Schedule& schedule,
                            const ReplayOptions& options) {
  CKPLAN_RETURN_IF_ERROR(CheckSteps(graph, schedule));
  const bool has_moves = std::any_of(schedule.steps.begin(), schedule.steps.end(),
                                     [](const Step& step) { return step.kind != StepKind::kRun; });
  Moves moves;
  moves.back.resize(schedule.steps.size());
  if (has_moves) {
    CKPLAN_ASSIGN_OR_RETURN(moves, FollowMoves(graph, schedule, options.link));
  }
  RunsReplay replay(graph, schedule.steps, moves, options);
  if (const auto fault = replay.Run()) return MakeError(ErrorCode::kCheckFailed, *fault);
  const GraphFigures figures = FiguresOf(graph);
  const Cost time = has_moves ? moves.makespan : replay.cost();
  const Cost overhead = time - figures.forward_cost - figures.backward_cost;
  Replayed found{
      replay.slab(), replay.peak_step(), overhead, Bytes(0), AreInOwnOrder(graph, schedule), {}};
  for (const int32_t count : replay.run_count()) {
    const NodeAction action = count == 0   ? NodeAction::kDrop
                              : count == 1 ? NodeAction::kKeep
                                           : NodeAction::kRecompute;
    found.decisions.push_back({action, 0, std::max(0, count - 1)});
  }
  found.moves = std::move(moves);
  return found;
}

GraphFigures FiguresOf(const JointGraph& graph) {
  GraphFigures figures;
  for (const Value& value : graph.values()) {
    if (!value.alias_of.is_none()) continue;
    if (IsGradientOfParameters(value.kind)) figures.optimized.bytes += value.bytes;
    const bool is_gradient = value.kind == ValueKind::kParameterGradient;
    const bool is_parameter = value.kind == ValueKind::kParameter;
    const bool is_counted = Counts(value.kind) && !value.producer.is_none();
    if (is_gradient) figures.constants.parameter_gradients += value.bytes;
    if (is_parameter) figures.constants.parameters += value.bytes;
    if (!is_gradient && !is_parameter && !is_counted) figures.constants.inputs += value.bytes;
  }
  if (graph.optimized_tensors()) {
    Bytes listed;
    for (const OptimizedTensors& row : *graph.optimized_tensors()) {
      listed += Bytes(row.count * row.elements * row.element_bytes);
    }
    figures.optimized.bytes = std::max(figures.optimized.bytes, listed);
    figures.optimized.tensors = *graph.optimized_tensors();
  }
  std::vector<ValueId> required = graph.results();
  for (const ValueId v : graph.values().ids()) {
    if (IsGradientOfParameters(graph.value(v).kind)) required.push_back(v);
  }
  IdVector<OpId, bool> is_needed(graph.ops().size());
  while (!required.empty()) {
    const OpId producer = graph.value(required.back()).producer;
    required.pop_back();
    if (producer.is_none() || is_needed[producer]) continue;
    is_needed[producer] = true;
    const std::vector<ValueId>& reads = graph.op(producer).reads;
    required.insert(required.end(), reads.begin(), reads.end());
  }
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    (op.phase == Phase::kForward ? figures.forward_cost : figures.backward_cost) += op.cost;
    if (!is_needed[id]) figures.least_overhead -= op.cost;
  }
  return figures;
}

}  // namespace ckplan
