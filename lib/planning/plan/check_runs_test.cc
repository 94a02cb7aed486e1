#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

// The meaning of a joint graph's runs by the definition: every version with the steps at which it
// is in memory, and for each step the sum over all versions. O(n^2).
class LiveRuns {
 public:
  LiveRuns(const JointGraph& graph, const std::vector<OpId>& runs) : graph_(graph), runs_(runs) {
    for (size_t step = 0; step < runs.size(); ++step) {
      for (const ValueId write : graph.op(runs[step]).writes) MakeVersion(step, write);
    }
  }

  std::pair<Bytes, size_t> Peak() const {
    Bytes peak;
    size_t at = 0;
    for (size_t step = 0; step < runs_.size(); ++step) {
      if (UsedAt(step) <= peak) continue;
      peak = UsedAt(step);
      at = step;
    }
    return {peak, at};
  }

 private:
  struct Memory {
    Bytes bytes;
    size_t from = 0, to = 0;  // Steps, both inclusive.
  };
  struct TwinVersion {
    ValueId value;
    size_t made = 0, dies = 0;
    size_t memory = 0;
  };

  Bytes UsedAt(size_t step) const {
    Bytes used = graph_.op(runs_[step]).workspace;
    for (const Memory& memory : memories_) {
      if (memory.from <= step && step <= memory.to) used += memory.bytes;
    }
    return used;
  }

  // The last step that reads the version of `value` made at `step`.
  size_t DeathOf(size_t step, ValueId value) const {
    size_t death = step;
    for (size_t k = step + 1; k < runs_.size(); ++k) {
      if (runs_[k] == runs_[step]) return death;
      const std::vector<ValueId>& reads = graph_.op(runs_[k]).reads;
      if (std::count(reads.begin(), reads.end(), value) > 0) death = k;
    }
    return graph_.value(value).is_result ? runs_.size() : death;
  }

  bool IsCounted(ValueId value) const {
    const Value& storage = graph_.value(graph_.value(value).storage);
    return storage.kind == ValueKind::kValue && !storage.producer.is_none();
  }

  TwinVersion* Newest(ValueId value) {
    for (size_t i = versions_.size(); i-- > 0;) {
      if (versions_[i].value == value) return &versions_[i];
    }
    FAIL("a read without a version");
    return nullptr;
  }

  bool IsAlone(const TwinVersion& version, size_t step) const {
    return std::none_of(versions_.begin(), versions_.end(), [&](const TwinVersion& other) {
      return &other != &version && other.memory == version.memory && other.dies >= step;
    });
  }

  size_t MemoryFor(size_t step, ValueId write) {
    const Value& value = graph_.value(write);
    if (!value.alias_of.is_none()) return Newest(value.alias_of)->memory;
    for (const auto& [to, from] : graph_.op(runs_[step]).in_place) {
      if (to != write || !IsCounted(from)) continue;
      const TwinVersion& read = *Newest(from);
      const bool fits = memories_[read.memory].bytes == value.bytes;
      if (fits && read.dies == step && IsAlone(read, step)) return read.memory;
    }
    memories_.push_back({value.bytes, step, step});
    return memories_.size() - 1;
  }

  void MakeVersion(size_t step, ValueId write) {
    if (!IsCounted(write)) return;
    const size_t death = DeathOf(step, write);
    const size_t memory = MemoryFor(step, write);
    memories_[memory].to = std::max(memories_[memory].to, death);
    versions_.push_back({write, step, death, memory});
  }

  const JointGraph& graph_;
  const std::vector<OpId>& runs_;
  std::vector<Memory> memories_;
  std::vector<TwinVersion> versions_;
};

// x ──▶ f ──▶ a ──▶ g ──▶ b (in place over a) ──▶ h ──▶ c, a result; h needs workspace
JointGraph Chain() {
  JointGraphParts parts;
  parts.name = "chain";
  const auto add_value = [&](const std::string& name, int64_t bytes, ValueKind kind) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size()) + 10;
    value.name = name;
    value.bytes = Bytes(bytes);
    value.kind = kind;
    return parts.values.push_back(std::move(value));
  };
  const auto add_op = [&](const std::string& name, ValueId read, ValueId write, int64_t cost) {
    Operation op;
    op.file_id = static_cast<int64_t>(parts.ops.size());
    op.name = name;
    op.reads = {read};
    op.writes = {write};
    op.cost = Cost(cost);
    return parts.ops.push_back(std::move(op));
  };
  const ValueId x = add_value("x", 100, ValueKind::kConstant);
  const ValueId a = add_value("a", 8, ValueKind::kValue);
  const ValueId b = add_value("b", 8, ValueKind::kValue);
  const ValueId c = add_value("c", 2, ValueKind::kValue);
  add_op("f", x, a, 1);
  const OpId g = add_op("g", a, b, 2);
  parts.ops[g].in_place = {{b, a}};
  const OpId h = add_op("h", b, c, 4);
  parts.ops[h].workspace = Bytes(5);
  parts.ops[h].phase = Phase::kBackward;
  parts.results = {c};
  return JointGraph::Create(std::move(parts)).value();
}

// A plan by an algorithm that proves nothing.
Plan PlanOf(const JointGraph& graph, const std::vector<OpId>& runs) {
  Plan plan = AssembleRuns(graph, runs);
  plan.request.algorithm = "dtr";
  return plan;
}

std::string FaultsOf(const JointGraph& graph, const Plan& plan) {
  std::string text;
  for (const std::string& fault : CheckPlan(graph, plan)) text += fault + "\n";
  return text;
}

}  // namespace

TEST_CASE("joint plans: figures of a chain, worked by hand") {
  const JointGraph graph = Chain();
  const std::vector<OpId> twice = {OpId(0), OpId(0), OpId(1), OpId(2)};
  const Plan plan = PlanOf(graph, twice);
  CHECK(FaultsOf(graph, plan).empty());
  // f 8 | f 8 | g in place 8 | h 8 + 2 + 5
  CHECK(plan.figures.peak == Bytes(15));
  CHECK(plan.figures.baseline_peak == Bytes(15));
  CHECK(plan.figures.overhead == Cost(1));
  CHECK_FALSE(plan.figures.lower_bound_cost.has_value());
  CHECK(plan.figures.forward_cost == Cost(3));
  CHECK(plan.figures.backward_cost == Cost(4));
  CHECK(plan.figures.constants == ConstantMemory{Bytes(0), Bytes(0), Bytes(100)});
  CHECK(plan.decisions[OpId(0)] == NodeDecision{NodeAction::kRecompute, 0, 1});
  CHECK(plan.decisions[OpId(1)] == NodeDecision{NodeAction::kKeep, 0, 0});
  const std::vector<LiveBuffer> live = {LiveBuffer::Tensor(ValueId(2), Bytes(8)),
                                        LiveBuffer::Tensor(ValueId(3), Bytes(2)),
                                        LiveBuffer::Workspace(OpId(2), Bytes(5))};
  CHECK(plan.peak->step == 3);
  CHECK(plan.peak->live == live);
}

TEST_CASE(
    "joint plans: an operation whose results are not needed may be dropped, which costs less") {
  JointGraphParts parts = PartsOf(Chain());
  parts.results = {ValueId(2)};  // b: h and its cost of 4 are not needed.
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  CHECK(MinOverhead(graph) == Cost(-4));
  const Plan dropped = PlanOf(graph, std::vector<OpId>{OpId(0), OpId(1)});
  CHECK(FaultsOf(graph, dropped).empty());
  CHECK(dropped.figures.overhead == Cost(-4));
  CHECK(dropped.figures.lower_bound_cost == Cost(-4));
  CHECK(dropped.decisions[OpId(2)] == NodeDecision{NodeAction::kDrop, 0, 0});
  const Plan whole = PlanOf(graph, OwnOrder(graph));
  CHECK(FaultsOf(graph, whole).empty());
  CHECK(whole.figures.overhead == Cost(0));
}

TEST_CASE("joint plans: the checker accepts random plans, whose peak equals the definition's") {
  int with_peak_after_start = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(1, 14));
    const JointGraph graph = RandomJointGraph(rng, options);
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const Plan plan = PlanOf(graph, runs);
    CHECK(FaultsOf(graph, plan) == "");
    const auto [peak, step] = LiveRuns(graph, runs).Peak();
    CHECK(plan.figures.peak == peak);
    CHECK(plan.peak->step == static_cast<int32_t>(step));
    with_peak_after_start += step > 0;
    CHECK(RunsOf(plan.schedule) == runs);
    CHECK(plan.figures.overhead >= MinOverhead(graph));
  }
  CHECK(with_peak_after_start > 500);
}

TEST_CASE("joint plans: no damage passes") {
  const struct {
    std::string what;
    std::function<void(Plan*)> damage;
  } kRows[] = {
      {"step 0: \"g\" reads \"a\"",
       [](Plan* p) { std::swap(p->schedule.steps[0], p->schedule.steps[1]); }},
      {"\"h\" never runs, but it produces \"c\"", [](Plan* p) { p->schedule.steps.pop_back(); }},
      {"step 3: the graph has no operation number 3",
       [](Plan* p) { p->schedule.steps.push_back(Step::Run(OpId(3))); }},
      {"step 3: the graph has no operation number -1",
       [](Plan* p) { p->schedule.steps.push_back(Step::Run(OpId())); }},
      {"step 0 is not allowed in a joint graph",
       [](Plan* p) { p->schedule.steps[0] = Step::Forward(OpId(0)); }},
      {"peak_bytes: the plan says 14", [](Plan* p) { p->figures.peak = Bytes(14); }},
      {"baseline_peak_bytes", [](Plan* p) { p->figures.baseline_peak = Bytes(1); }},
      {"arena_bytes", [](Plan* p) { p->figures.arena = Bytes(99); }},
      {"overhead_cost: the plan says 1", [](Plan* p) { p->figures.overhead = Cost(1); }},
      {"forward_cost", [](Plan* p) { p->figures.forward_cost = Cost(1); }},
      {"backward_cost", [](Plan* p) { p->figures.backward_cost = Cost(1); }},
      {"lower_bound_cost: 1 is not a lower bound",
       [](Plan* p) { p->figures.lower_bound_cost = Cost(1); }},
      {"lower_bound_cost: -1 is not a lower bound",
       [](Plan* p) { p->figures.lower_bound_cost = Cost(-1); }},
      {"lower_bound_cost: null", [](Plan* p) { p->figures.lower_bound_cost.reset(); }},
      {"inputs: the plan says 0", [](Plan* p) { p->figures.constants.inputs = Bytes(0); }},
      {"optimizer_state", [](Plan* p) { p->figures.optimizer_state = Bytes(1); }},
      {"static_allocation_bytes", [](Plan* p) { p->figures.static_allocations.emplace(); }},
      {"above the budget of 14", [](Plan* p) { p->request.budget = Budget::Of(Bytes(14)); }},
      {"liveness", [](Plan* p) { p->schedule.frees = FreePolicy::kExplicit; }},
      {"overlaps", [](Plan* p) { std::fill(p->offsets.begin(), p->offsets.end(), Bytes(0)); }},
      {"is negative", [](Plan* p) { p->offsets[0] = Bytes(-1); }},
      {"offset 0 (\"a\") is 15, which is not a multiple of align_bytes, 8",
       [](Plan* p) {
         p->request.align_bytes = 8;
         p->offsets[0] = Bytes(15);
       }},
      {"no offset for buffer 2", [](Plan* p) { p->offsets.pop_back(); }},
      {"4 offsets for 3 buffers", [](Plan* p) { p->offsets.emplace_back(0); }},
      {"peak: missing", [](Plan* p) { p->peak.reset(); }},
      {"peak: the plan says step 0", [](Plan* p) { p->peak->step = 0; }},
      {"peak: row 0 must be \"b\"", [](Plan* p) { p->peak->live[0].index = 1; }},
      {"peak: the plan has 4 rows", [](Plan* p) { p->peak->live.push_back(p->peak->live[0]); }},
      {"operation \"f\": the plan says drop",
       [](Plan* p) { p->decisions[OpId(0)].action = NodeAction::kDrop; }},
      {"in segment 1, but the plan has no segments",
       [](Plan* p) { p->decisions[OpId(0)].segment = 1; }},
      {"operation \"g\": the plan's \"name\" differs",
       [](Plan* p) { p->labels[OpId(1)].name = "G"; }},
      {"the plan's \"outputs\" differs",
       [](Plan* p) { p->labels[OpId(1)].outputs[0].bytes = Bytes(0); }},
      {"the plan has decisions for 2 operations", [](Plan* p) { p->decisions.resize(2); }},
  };
  const JointGraph graph = Chain();
  for (const auto& row : kRows) {
    CAPTURE(row.what);
    Plan plan = PlanOf(graph, OwnOrder(graph));
    REQUIRE(FaultsOf(graph, plan).empty());
    row.damage(&plan);
    const std::string faults = FaultsOf(graph, plan);
    CAPTURE(faults);
    CHECK(faults.find(row.what) != std::string::npos);
  }
}

TEST_CASE("joint plans: a second run of what must not run twice is refused") {
  JointGraphParts parts = PartsOf(Chain());
  parts.ops[OpId(0)].may_repeat = false;
  const JointGraph strict = JointGraph::Create(std::move(parts)).value();
  const Plan plan = PlanOf(Chain(), std::vector<OpId>{OpId(0), OpId(0), OpId(1), OpId(2)});
  CHECK(FaultsOf(strict, plan) == "step 1: \"f\" must not run twice\n");
}

}  // namespace ckplan
