#include "lib/plan/check_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/checked.h"
#include "lib/base/stop.h"
#include "lib/plan/check_constraints.h"
#include "lib/plan/claims.h"
#include "lib/plan/slab.h"

namespace ckplan {
namespace {

bool IsGradientOfParameters(ValueKind kind) {
  return kind == ValueKind::kParameterGradient || kind == ValueKind::kArrivingGradient;
}

// In the peak, that is, where an operation makes such a value.
bool Counts(ValueKind kind) {
  return kind == ValueKind::kValue || kind == ValueKind::kArrivingGradient;
}

// Replays runs one at a time; stops at the first fault, since later ones may follow from it.
class RunsReplay {
 public:
  RunsReplay(const JointGraph& graph, std::vector<OpId> runs, const std::vector<Bytes>* offsets,
             int64_t alignment = 1)
      : graph_(graph),
        runs_(std::move(runs)),
        slab_(offsets, alignment),
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
    for (size_t k = 0; k < runs_.size(); ++k) {
      PollStop();
      const Bytes highest = slab_.highest();
      RunStep(k);
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
  bool IsMade(ValueId v) const { return !graph_.value(v).maker.is_none(); }

  const Value& StorageOf(ValueId v) const { return graph_.value(graph_.value(v).storage); }

  // Whether the value, or what it is in the memory of, is counted in the peak.
  bool HasMemory(ValueId v) const {
    const Value& storage = StorageOf(v);
    return !storage.maker.is_none() && Counts(storage.kind);
  }

  // Everything but memory.
  std::optional<std::string> CountRuns() {
    for (size_t k = 0; k < runs_.size(); ++k) {
      PollStop();
      const Operation& op = graph_.op(runs_[k]);
      for (const ValueId read : op.reads) {
        if (IsMade(read) && run_count_[graph_.value(read).maker] == 0) {
          return fmt::format("step {}: \"{}\" reads \"{}\", which has not been made", k, op.name,
                             graph_.value(read).name);
        }
      }
      if (++run_count_[runs_[k]] > 1 && !op.may_repeat) {
        return fmt::format("step {}: \"{}\" must not run twice", k, op.name);
      }
      const auto sum = CheckedAdd(cost_.count(), op.cost.count());
      if (!sum) return "the costs of the runs together overflow";
      cost_ = Cost(*sum);
    }
    for (const Operation& op : graph_.ops()) {
      for (const ValueId write : op.writes) {
        const Value& value = graph_.value(write);
        const bool is_wanted = value.is_result || IsGradientOfParameters(value.kind);
        if (is_wanted && run_count_[value.maker] == 0) {
          return fmt::format("\"{}\" never runs, but makes \"{}\"", op.name, value.name);
        }
      }
    }
    return std::nullopt;
  }

  // From the end: the first wish for a value that is met is the last read of the version that the
  // run before it makes.
  void FindDeaths() {
    dying_.resize(runs_.size());
    std::map<ValueId, size_t> wanted_at;
    for (const ValueId result : graph_.results()) wanted_at[result] = runs_.size();
    for (const ValueId v : graph_.values().ids()) {
      if (graph_.value(v).kind == ValueKind::kArrivingGradient) wanted_at[v] = runs_.size();
    }
    for (size_t k = runs_.size(); k-- > 0;) {
      PollStop();
      const Operation& op = graph_.op(runs_[k]);
      for (const ValueId write : op.writes) {
        const auto wish = wanted_at.find(write);
        const size_t death = wish == wanted_at.end() ? k : wish->second;
        if (wish != wanted_at.end()) wanted_at.erase(wish);
        if (death < runs_.size() && HasMemory(write)) dying_[death].push_back(write);
      }
      for (const ValueId read : op.reads) wanted_at.emplace(read, k);
    }
  }

  void RunStep(size_t k) {
    const Operation& op = graph_.op(runs_[k]);
    for (const ValueId v : dying_[k]) last_death_[v] = k;
    std::vector<ValueId> with_memory_of_their_own;
    for (const ValueId write : op.writes) {
      if (!HasMemory(write)) continue;
      const ValueId base = graph_.value(write).alias_of;
      const std::optional<int> block =
          base.is_none() ? BlockToTakeOver(write, k) : std::optional(block_of_.at(base));
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
      slab_.Release(slab_.Allocate(LiveBuffer::Workspace(runs_[k], op.workspace),
                                   "the workspace of \"" + op.name + "\""));
    }
    for (const ValueId v : dying_[k]) LetGo(v);
  }

  // The block of a read that dies here and is alone in it, if `write` may go there.
  std::optional<int> BlockToTakeOver(ValueId write, size_t k) const {
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

  void LetGo(ValueId v) {
    const int block = block_of_.at(v);
    block_of_.erase(v);
    if (--holders_.at(block) > 0) return;
    holders_.erase(block);
    slab_.Release(block);
  }

  const JointGraph& graph_;
  const std::vector<OpId> runs_;
  Slab slab_;
  IdVector<OpId, int32_t> run_count_;
  IdVector<ValueId, std::vector<ValueId>> may_replace_;  // Reads whose memory a write may take.
  std::vector<std::vector<ValueId>> dying_;              // By step.
  IdVector<ValueId, std::optional<size_t>> last_death_;  // The step, of those up to now.
  std::map<ValueId, int> block_of_;                      // Of each value that is in memory.
  std::map<int, int> holders_;                           // How many values are in a block.
  int32_t peak_step_ = 0;
  Cost cost_;
};

// What the graph itself says, added up once more.
struct GraphFigures {
  ConstantMemory constants;
  Bytes parameter_gradients;  // Those of the constants, and those that count in the peak.
  Cost forward_cost;
  Cost backward_cost;
  Cost unneeded_cost;  // Of operations from which no result and no parameter gradient follows.
};

GraphFigures FiguresOf(const JointGraph& graph) {
  GraphFigures figures;
  for (const Value& value : graph.values()) {
    if (!value.alias_of.is_none()) continue;
    if (IsGradientOfParameters(value.kind)) figures.parameter_gradients += value.bytes;
    const bool is_gradient = value.kind == ValueKind::kParameterGradient;
    const bool is_parameter = value.kind == ValueKind::kParameter;
    const bool is_counted = Counts(value.kind) && !value.maker.is_none();
    if (is_gradient) figures.constants.parameter_gradients += value.bytes;
    if (is_parameter) figures.constants.parameters += value.bytes;
    if (!is_gradient && !is_parameter && !is_counted) figures.constants.inputs += value.bytes;
  }
  std::vector<ValueId> wanted = graph.results();
  for (const ValueId v : graph.values().ids()) {
    if (IsGradientOfParameters(graph.value(v).kind)) wanted.push_back(v);
  }
  IdVector<OpId, bool> is_needed(graph.ops().size());
  while (!wanted.empty()) {
    const OpId maker = graph.value(wanted.back()).maker;
    wanted.pop_back();
    if (maker.is_none() || is_needed[maker]) continue;
    is_needed[maker] = true;
    const std::vector<ValueId>& reads = graph.op(maker).reads;
    wanted.insert(wanted.end(), reads.begin(), reads.end());
  }
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    (op.phase == Phase::kForward ? figures.forward_cost : figures.backward_cost) += op.cost;
    if (!is_needed[id]) figures.unneeded_cost += op.cost;
  }
  return figures;
}

// The runs of the plan; a fault if its steps are anything else.
Result<std::vector<OpId>> RunsOfPlan(const JointGraph& graph, const Plan& plan) {
  std::vector<OpId> runs;
  for (size_t k = 0; k < plan.schedule.steps.size(); ++k) {
    const Step& step = plan.schedule.steps[k];
    if (step.kind != StepKind::kRun) {
      return MakeError(ErrorCode::kCheckFailed,
                       fmt::format("step {} is no run of an operation", k));
    }
    if (static_cast<size_t>(step.index) >= graph.ops().size()) {
      return MakeError(ErrorCode::kCheckFailed,
                       fmt::format("step {}: there is no operation of number {}", k, step.index));
    }
    runs.push_back(step.node());
  }
  return runs;
}

// Whether operations run for the first time in the order of the graph.
bool IsInOwnOrder(const JointGraph& graph, const Plan& plan) {
  IdVector<OpId, bool> has_run(graph.ops().size());
  OpId last(0);
  for (const Step& step : plan.schedule.steps) {
    const OpId op = step.node();
    if (has_run[op]) continue;
    has_run[op] = true;
    if (op < last) return false;
    last = op;
  }
  return true;
}

std::string Described(const JointGraph& graph, const LiveBuffer& buffer) {
  if (buffer.kind == BufferKind::kWorkspace) {
    return fmt::format("the workspace of \"{}\"", graph.op(buffer.node()).name);
  }
  return fmt::format("\"{}\"", graph.value(buffer.tensor()).name);
}

void CompareRows(const JointGraph& graph, const Plan& plan, const RunsReplay& replay,
                 std::vector<std::string>* faults) {
  const size_t count = graph.ops().size();
  if (plan.decisions.size() != count || plan.labels.size() != count) {
    faults->push_back(
        fmt::format("the plan decides on {} operations and names {}, the graph has {}",
                    plan.decisions.size(), plan.labels.size(), count));
    return;
  }
  for (const OpId id : graph.ops().ids()) {
    const NodeDecision& claimed = plan.decisions[id];
    const int32_t runs = replay.run_count()[id];
    const NodeAction action = runs == 0   ? NodeAction::kDrop
                              : runs == 1 ? NodeAction::kKeep
                                          : NodeAction::kRecompute;
    const NodeDecision derived{action, 0, std::max(0, runs - 1)};
    if (claimed != derived) {
      faults->push_back(fmt::format(
          "operation \"{}\": the plan says {} with {} recomputations in segment {}, the steps say "
          "{} with {}, and there are no segments",
          graph.op(id).name, NameOf(claimed.action), claimed.recompute_count, claimed.segment,
          NameOf(action), derived.recompute_count));
    }
    const std::string_view field = DifferenceOf(plan.labels[id], LabelOf(graph, id));
    if (field.empty()) continue;
    faults->push_back(fmt::format("operation \"{}\": its row has another \"{}\" than the graph",
                                  graph.op(id).name, field));
  }
}

void CompareFigures(const GraphFigures& graph, const Plan& plan, const RunsReplay& replay,
                    bool is_own_order, std::vector<std::string>* faults) {
  const PlanFigures& figures = plan.figures;
  const Cost overhead = replay.cost() - graph.forward_cost - graph.backward_cost;
  CompareClaim("peak_bytes", figures.peak, replay.slab().highest(), faults);
  CompareClaim("other_micro_batches_bytes", figures.other_micro_batches, Bytes(0), faults);
  CompareClaim("arena_bytes", figures.arena, replay.slab().end(), faults);
  if (figures.static_allocations) {
    faults->push_back("static_allocation_bytes: not defined for joint graphs");
  }
  CompareClaim("overhead_cost", figures.overhead, overhead, faults);
  CompareClaim("forward_cost", figures.forward_cost, graph.forward_cost, faults);
  CompareClaim("backward_cost", figures.backward_cost, graph.backward_cost, faults);
  CompareConstants(graph.constants, graph.parameter_gradients, plan, faults);
  CheckLowerBound(figures, overhead, Cost(0) - graph.unneeded_cost, faults);
  CheckCurve(plan, graph.forward_cost + graph.backward_cost, faults);
  CheckCertificate(plan, overhead, Cost(0) - graph.unneeded_cost, replay.slab().highest(),
                   is_own_order, faults);
}

}  // namespace

std::vector<std::string> CheckJointPlan(const JointGraph& graph, const Plan& plan) {
  std::vector<std::string> faults;
  Result<std::vector<OpId>> runs = RunsOfPlan(graph, plan);
  if (!runs.ok()) return {runs.error().message};
  RunsReplay replay(graph, *std::move(runs), &plan.offsets, plan.request.align_bytes);
  if (const auto fault = replay.Run()) return {*fault};
  RunsReplay baseline(graph, OwnOrder(graph), nullptr);
  if (const auto fault = baseline.Run()) return {"without recomputation: " + *fault};

  CompareClaim("baseline_peak_bytes", plan.figures.baseline_peak, baseline.slab().highest(),
               &faults);
  CompareFigures(FiguresOf(graph), plan, replay, IsInOwnOrder(graph, plan), &faults);
  if (plan.offsets.size() != replay.slab().allocations()) {
    faults.push_back(fmt::format("the arena has {} offsets for {} buffers", plan.offsets.size(),
                                 replay.slab().allocations()));
  }
  CompareRequest(plan, replay.slab().highest(), &faults);
  for (std::string& broken : BrokenConstraints(graph, plan.request, plan.schedule)) {
    faults.push_back(std::move(broken));
  }
  ComparePeak(
      plan, replay.peak_step(), replay.slab().AtPeak(),
      [&](const LiveBuffer& buffer) { return Described(graph, buffer); }, &faults);
  CompareRows(graph, plan, replay, &faults);
  return faults;
}

}  // namespace ckplan
