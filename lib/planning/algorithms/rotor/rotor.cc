#include "lib/planning/algorithms/rotor/rotor.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

namespace {

class StageFinder {
 public:
  StageFinder(const TensorGraph& graph, const VertexGraph& vertices)
      : graph_(graph), stage_of_(vertices.size()), is_read_backward_(graph.tensors().size()) {
    const Chain blocks = FindChain(graph, vertices);
    const int32_t count = std::min(blocks.block_count, kMaxChainStages);
    chain_.stages.resize(static_cast<size_t>(count));
    chain_.nodes.resize(static_cast<size_t>(count));
    chain_.runs_once = IdVector<NodeId, bool>(vertices.size());
    for (const NodeId id : vertices.ids()) {
      const int64_t block = blocks.block_of[id];
      stage_of_[id] = static_cast<int32_t>(block * count / blocks.block_count);
      chain_.nodes[StageOf(id)].push_back(id);
      for (const TensorId read : graph.node(id).backward_reads) is_read_backward_[read] = true;
    }
  }

  StageChain Run() && {
    for (const NodeId id : graph_.nodes().ids()) CountTensors(id);
    if (!chain_.stages.empty()) chain_.stages.back().gradient = 0;
    Measure();
    return std::move(chain_);
  }

 private:
  size_t StageOf(NodeId id) const { return static_cast<size_t>(stage_of_[id]); }

  bool IsReadLater(TensorId tensor) const {
    const Tensor& read = graph_.tensor(tensor);
    return std::any_of(read.consumers.begin(), read.consumers.end(),
                       [&](NodeId reader) { return StageOf(reader) > StageOf(read.producer); });
  }

  void CountTensors(NodeId id) {
    PollStop();
    const Node& node = graph_.node(id);
    Stage& stage = chain_.stages[StageOf(id)];
    const bool is_read_later = std::any_of(node.outputs.begin(), node.outputs.end(),
                                           [&](TensorId output) { return IsReadLater(output); });
    chain_.runs_once[id] = is_read_later && !NeedsGradient(graph_, id);
    if (chain_.runs_once[id]) return;
    stage.time += node.forward_cost.count();
    for (const TensorId output : node.outputs) {
      const int64_t bytes = graph_.tensor(output).bytes.count();
      if (IsReadLater(output)) {
        stage.output += bytes;
        if (graph_.tensor(output).requires_grad) stage.gradient += bytes;
      }
      if (IsReadLater(output) || is_read_backward_[output]) stage.saved += bytes;
    }
  }

  // Returns how many bytes of the stage a step that saves everything holds until the stage's
  // backward.
  int64_t ReadBackward(size_t stage) const {
    int64_t bytes = 0;
    for (const NodeId id : chain_.nodes[stage]) {
      if (chain_.runs_once[id]) continue;
      for (const TensorId output : graph_.node(id).outputs) {
        if (is_read_backward_[output]) bytes += graph_.tensor(output).bytes.count();
      }
    }
    return bytes;
  }

  Schedule ScheduleForwardTwice() const {
    Schedule schedule;
    for (const std::vector<NodeId>& nodes : chain_.nodes) {
      for (const NodeId id : nodes) schedule.steps.push_back(Step::Forward(id));
    }
    for (const std::vector<NodeId>& nodes : chain_.nodes) {
      for (const NodeId id : nodes) {
        if (!chain_.runs_once[id]) schedule.steps.push_back(Step::Forward(id));
      }
    }
    schedule.steps.push_back(Step::Loss());
    for (auto nodes = chain_.nodes.rbegin(); nodes != chain_.nodes.rend(); ++nodes) {
      for (auto id = nodes->rbegin(); id != nodes->rend(); ++id) {
        schedule.steps.push_back(Step::Backward(*id));
      }
    }
    return schedule;
  }

  // Returns the peak of the next `count` actions and advances past them.
  static int64_t TakePeak(std::span<const Bytes>* steps, size_t count) {
    int64_t peak = 0;
    for (const Bytes bytes : steps->first(count)) peak = std::max(peak, bytes.count());
    *steps = steps->subspan(count);
    return peak;
  }

  void Measure() {
    const Timeline timeline = BuildTimeline(graph_, ScheduleForwardTwice());
    std::span<const Bytes> steps(timeline.step_bytes);
    const size_t count = chain_.stages.size();
    for (size_t i = 0; i < count; ++i) {
      const int64_t input = i == 0 ? 0 : chain_.stages[i - 1].output;
      chain_.stages[i].forward =
          std::max<int64_t>(0, TakePeak(&steps, chain_.nodes[i].size()) - input);
    }
    // Memory that earlier stages have saved. A stage's input counts whether or not backward reads
    // it.
    std::vector<int64_t> saved_before(count + 1);
    for (size_t i = 0; i < count; ++i) {
      const int64_t read_bytes = ReadBackward(i);
      const auto once = std::count_if(chain_.nodes[i].begin(), chain_.nodes[i].end(),
                                      [&](NodeId id) { return chain_.runs_once[id]; });
      const size_t runs = chain_.nodes[i].size() - static_cast<size_t>(once);
      chain_.stages[i].forward_all =
          std::max<int64_t>(0, TakePeak(&steps, runs) - saved_before[i] - UnsavedInputBytes(i));
      saved_before[i + 1] = saved_before[i] + read_bytes;
    }
    TakePeak(&steps, 1);  // Skips the loss: the next backward step needs as much.
    for (size_t i = count; i-- > 0;) {
      chain_.stages[i].backward =
          std::max<int64_t>(0, TakePeak(&steps, chain_.nodes[i].size()) - saved_before[i]);
    }
  }

  // Returns the bytes of the stage's input that no backward reads.
  int64_t UnsavedInputBytes(size_t stage) const {
    if (stage == 0) return 0;
    int64_t bytes = 0;
    for (const NodeId id : chain_.nodes[stage - 1]) {
      if (chain_.runs_once[id]) continue;
      for (const TensorId output : graph_.node(id).outputs) {
        if (IsReadLater(output) && !is_read_backward_[output]) {
          bytes += graph_.tensor(output).bytes.count();
        }
      }
    }
    return bytes;
  }

  const TensorGraph& graph_;
  IdVector<NodeId, int32_t> stage_of_;
  IdVector<TensorId, bool> is_read_backward_;
  StageChain chain_;
};

}  // namespace

StageChain FindStages(const TensorGraph& graph, const VertexGraph& vertices) {
  return StageFinder(graph, vertices).Run();
}

namespace {

// m_all: the memory for F_all of s, and later for the backward of s, while the gradient of t is
// live.
int64_t MemoryToSaveRange(std::span<const Stage> stages, size_t s, size_t t) {
  return std::max(stages[t].gradient + stages[s].forward_all, stages[s].backward);
}

// m_none for a single stage: the memory for F_ck of s or F_none of `stage`, while the gradient of t
// is live.
int64_t MemoryToPassStage(std::span<const Stage> stages, size_t s, size_t stage, size_t t) {
  const int64_t input = stage == s ? 0 : stages[stage - 1].output;
  return stages[t].gradient + input + stages[stage].forward;
}

}  // namespace

int64_t MinMemory(std::span<const Stage> stages) {
  const size_t count = stages.size();
  std::vector<std::vector<int64_t>> least(count, std::vector<int64_t>(count));
  for (size_t s = count; s-- > 0;) {
    PollStop();
    for (size_t t = s; t < count; ++t) {
      int64_t best = MemoryToSaveRange(stages, s, t);
      if (s < t) best = std::max(best, stages[s].saved + least[s + 1][t]);
      int64_t pass = 0;
      for (size_t k = s + 1; k <= t; ++k) {
        pass = std::max(pass, MemoryToPassStage(stages, s, k - 1, t));
        best =
            std::min(best, std::max({pass, stages[k - 1].output + least[k][t], least[s][k - 1]}));
      }
      least[s][t] = best;
    }
  }
  return least[0][count - 1];
}

int64_t MemoryToSaveAll(std::span<const Stage> stages) {
  int64_t need = 0;
  for (size_t s = stages.size(); s-- > 0;) {
    const bool is_last = s + 1 == stages.size();
    need = std::max(MemoryToSaveRange(stages, s, stages.size() - 1),
                    is_last ? 0 : stages[s].saved + need);
  }
  return need;
}

PersistentProgram::PersistentProgram(std::vector<Stage> stages, int64_t slots)
    : stages_(std::move(stages)),
      count_(stages_.size()),
      slots_(slots),
      time_before_(count_ + 1),
      cost_(count_ * count_ * static_cast<size_t>(slots + 1), kInfinite),
      enough_(count_ * count_) {
  for (size_t i = 0; i < count_; ++i) time_before_[i + 1] = time_before_[i] + stages_[i].time;
  for (size_t s = count_; s-- > 0;) {
    for (size_t t = s; t < count_; ++t) Fill(s, t);
  }
}

void PersistentProgram::Fill(size_t s, size_t t) {
  PollStop();
  const int64_t saved = s < t ? stages_[s].saved : 0;
  int64_t* const row = cost_.data() + Row(s, t);
  for (int64_t m = std::max(saved, MemoryToSaveRange(stages_, s, t)); m <= slots_; ++m) {
    row[m] = stages_[s].time + (s < t ? At(s + 1, t, m - saved) : 0);
  }
  int64_t& enough = enough_[s * count_ + t];
  enough = MemoryToSaveRange(stages_, s, t);
  if (s < t) enough = std::max(enough, saved + enough_[(s + 1) * count_ + t]);
  int64_t need = 0;
  for (size_t k = s + 1; k <= t; ++k) {
    need = std::max(need, MemoryToPassStage(stages_, s, k - 1, t));
    TryChoice(s, t, k, need, enough);
  }
}

// The innermost loop, over plain arrays so that it vectorises. With `enough` slots or more, every
// stage runs once, which is already optimal.
void PersistentProgram::TryChoice(size_t s, size_t t, size_t k, int64_t need, int64_t enough) {
  const int64_t output = stages_[k - 1].output;
  const int64_t time = TimeBetween(s, k);
  int64_t* const row = cost_.data() + Row(s, t);
  const int64_t* const later = cost_.data() + Row(k, t);
  const int64_t* const before = cost_.data() + Row(s, k - 1);
  const int64_t end = std::min(slots_ + 1, enough);
  for (int64_t m = std::max(need, output); m < end; ++m) {
    row[m] = std::min(row[m], time + later[m - output] + before[m]);
  }
}

size_t PersistentProgram::ChoiceAt(size_t s, size_t t, int64_t slots) const {
  const int64_t best = At(s, t, slots);
  const int64_t saved = s < t ? stages_[s].saved : 0;
  if (slots >= std::max(saved, MemoryToSaveRange(stages_, s, t)) &&
      best == stages_[s].time + (s < t ? At(s + 1, t, slots - saved) : 0)) {
    return kSaveAll;
  }
  int64_t need = 0;
  for (size_t k = s + 1; k <= t; ++k) {
    need = std::max(need, MemoryToPassStage(stages_, s, k - 1, t));
    const int64_t output = stages_[k - 1].output;
    if (slots < std::max(need, output)) continue;
    if (best == TimeBetween(s, k) + At(k, t, slots - output) + At(s, k - 1, slots)) return k;
  }
  CKPLAN_CHECK(false, "one of the choices has the finite cost");
}

std::vector<StageRun> PersistentProgram::Runs() const {
  std::vector<StageRun> runs;
  AddRuns(0, count_ - 1, slots_, &runs);
  return runs;
}

void PersistentProgram::AddRuns(size_t s, size_t t, int64_t slots,
                                std::vector<StageRun>* runs) const {
  const size_t choice = ChoiceAt(s, t, slots);
  if (choice == kSaveAll) {
    runs->push_back({s, false});
    if (s < t) AddRuns(s + 1, t, slots - stages_[s].saved, runs);
    runs->push_back({s, true});
    return;
  }
  for (size_t stage = s; stage < choice; ++stage) runs->push_back({stage, false});
  AddRuns(choice, t, slots - stages_[choice - 1].output, runs);
  AddRuns(s, choice - 1, slots, runs);
}

int64_t PersistentProgram::PeakOf(std::span<const Stage> stages) const {
  return PeakOf(stages, 0, count_ - 1, slots_);
}

int64_t PersistentProgram::PeakOf(std::span<const Stage> stages, size_t s, size_t t,
                                  int64_t slots) const {
  const size_t choice = ChoiceAt(s, t, slots);
  if (choice == kSaveAll) {
    const int64_t save_all = MemoryToSaveRange(stages, s, t);
    if (s == t) return save_all;
    return std::max(save_all, stages[s].saved + PeakOf(stages, s + 1, t, slots - stages_[s].saved));
  }
  int64_t peak = 0;
  for (size_t stage = s; stage < choice; ++stage) {
    peak = std::max(peak, MemoryToPassStage(stages, s, stage, t));
  }
  const int64_t output = stages[choice - 1].output;
  peak = std::max(peak, output + PeakOf(stages, choice, t, slots - stages_[choice - 1].output));
  return std::max(peak, PeakOf(stages, s, choice - 1, slots));
}

namespace {

constexpr int64_t kSlots = 500;  // As in the authors' program, rotor.

int64_t SlotCount(int64_t budget) { return std::min(budget, kSlots); }

// Returns floor(budget * slot / slots) without overflow.
int64_t BytesOf(int64_t slot, int64_t budget) {
  const int64_t slots = SlotCount(budget);
  return budget / slots * slot + budget % slots * slot / slots;
}

// Returns the smallest number of slots that hold `bytes`, or one more than the total.
int64_t SlotsFor(int64_t bytes, int64_t budget) {
  int64_t low = 0;
  int64_t high = SlotCount(budget) + 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool holds = BytesOf(middle, budget) >= bytes;
    (holds ? high : low) = holds ? middle : middle + 1;
  }
  return low;
}

std::vector<Stage> ConvertToSlots(const std::vector<Stage>& stages, int64_t budget) {
  std::vector<Stage> rounded = stages;
  for (Stage& stage : rounded) {
    for (int64_t Stage::*size : {&Stage::output, &Stage::saved, &Stage::gradient, &Stage::forward,
                                 &Stage::forward_all, &Stage::backward}) {
      stage.*size = SlotsFor(stage.*size, budget);
    }
  }
  return rounded;
}

// Returns the smallest budget whose slots hold the memory that `need` computes. Sizes are rounded
// up, so no size takes more slots in a larger budget, and bisection works. The upper limit, twice
// the need in bytes plus a slot for each of 64 stages, allows for any rounding.
int64_t FindSmallestBudget(const std::vector<Stage>& stages,
                           int64_t (*need)(std::span<const Stage>)) {
  int64_t low = std::max<int64_t>(1, need(stages));
  int64_t high = 2 * low;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool fits = need(ConvertToSlots(stages, middle)) <= SlotCount(middle);
    (fits ? high : low) = fits ? middle : middle + 1;
  }
  return low;
}

class Rotor : public PreparedSolver {
 public:
  explicit Rotor(const Problem& problem)
      : graph_(problem.graph), chain_(FindStages(problem.graph, problem.vertices)) {
    if (chain_.stages.empty()) return;
    min_budget_ = FindSmallestBudget(chain_.stages, MinMemory);
    max_budget_ = std::max(min_budget_, FindSmallestBudget(chain_.stages, MemoryToSaveAll));
  }

  Knob knob() const override {
    return {Knob::Kind::kPaperBudget, min_budget_, max_budget_, min_budget_};
  }

  Result<SolveOutcome> Solve(int64_t budget, const SolveLimits&) override {
    SolveOutcome outcome;
    outcome.guarantee = "optimal among persistent schedules of the chain, in slots of memory";
    outcome.paper.budget = Bytes(budget);
    // A budget above the useful one would only make the slots coarser.
    const int64_t useful = std::min(budget, max_budget_);
    if (chain_.stages.empty()) {
      outcome.strategy = KeepAllSchedule({});
      return outcome;
    }
    const PersistentProgram program(ConvertToSlots(chain_.stages, useful), SlotCount(useful));
    if (!program.is_feasible()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("rotor has no schedule within {} bytes", budget));
    }
    int64_t once = 0;
    for (const Stage& stage : chain_.stages) once += stage.time;
    outcome.paper.peak = Bytes(program.PeakOf(chain_.stages));
    outcome.paper.overhead = Cost(program.time() - once);
    outcome.is_optimal = useful <= kSlots || program.time() == once;
    outcome.strategy = ScheduleOf(program.Runs());
    return outcome;
  }

 private:
  Schedule ScheduleOf(const std::vector<StageRun>& runs) const {
    Schedule schedule;
    std::vector<bool> has_run(chain_.stages.size());
    for (const StageRun& run : runs) {
      const std::vector<NodeId>& nodes = chain_.nodes[run.stage];
      if (run.is_backward) {
        const bool is_last = run.stage + 1 == chain_.stages.size();
        if (is_last) schedule.steps.push_back(Step::Loss());
        for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
          schedule.steps.push_back(Step::Backward(*id));
        }
        continue;
      }
      for (const NodeId id : nodes) {
        if (has_run[run.stage] && chain_.runs_once[id]) continue;
        schedule.steps.push_back(Step::Forward(id));
      }
      has_run[run.stage] = true;
    }
    return RemoveUnreadRuns(graph_, schedule);
  }

  const TensorGraph& graph_;
  const StageChain chain_;
  int64_t min_budget_ = 0;
  int64_t max_budget_ = 0;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareRotor(const Problem& problem, const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new Rotor(problem));
}

}  // namespace ckplan
