#include <doctest/doctest.h>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/random_steps.h"

namespace ckplan {
namespace {

// Does the same as AliasRuns, but walks every chain of aliases to its end at every read.
class NaiveAliasRuns {
 public:
  explicit NaiveAliasRuns(const JointGraph& graph)
      : graph_(graph), made_(graph.values().size()), base_(graph.values().size()) {}

  Runs Run(const Runs& runs) {
    for (const OpId op : runs) {
      for (const ValueId read : graph_.op(op).reads) Refresh(read);
      Append(op);
    }
    for (const ValueId result : graph_.results()) Refresh(result);
    return runs_;
  }

 private:
  void Refresh(ValueId v) {
    const Value& value = graph_.value(v);
    if (value.alias_of.is_none()) return;
    Refresh(value.alias_of);
    if (base_[v] == made_[value.alias_of] || value.producer.is_none()) return;
    const Operation& producer = graph_.op(value.producer);
    bool is_view = producer.may_repeat;
    for (const ValueId write : producer.writes) {
      is_view = is_view && !graph_.value(write).alias_of.is_none();
    }
    for (const ValueId read : producer.reads) {
      is_view = is_view && (read == value.alias_of || graph_.value(read).producer.is_none());
    }
    if (is_view) Append(value.producer);
  }

  void Append(OpId op) {
    for (const ValueId write : graph_.op(op).writes) {
      made_[write] = ++count_;
      const ValueId base = graph_.value(write).alias_of;
      if (!base.is_none()) base_[write] = made_[base];
    }
    runs_.push_back(op);
  }

  const JointGraph& graph_;
  IdVector<ValueId, int64_t> made_;
  IdVector<ValueId, int64_t> base_;
  int64_t count_ = 0;
  Runs runs_;
};

// Makes a first value and a chain of aliases, each made by an operation that reads the one before.
JointGraph ChainOfAliases(int64_t count) {
  JointGraphParts parts;
  for (int64_t i = 0; i < count; ++i) {
    Value value;
    value.file_id = i;
    value.name = "v";
    value.bytes = Bytes(8);
    Operation op;
    op.file_id = i;
    op.name = "o";
    if (i > 0) value.alias_of = ValueId(static_cast<size_t>(i - 1));
    if (i > 0) op.reads = {value.alias_of};
    op.writes = {parts.values.push_back(std::move(value))};
    parts.ops.push_back(std::move(op));
  }
  parts.results = {ValueId(static_cast<size_t>(count - 1))};
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("best: with aliases made again, a plan needs no more than the flat simulator reports") {
  int helped = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(3, 25));
    options.percent_aliases = 30;
    options.percent_two_writes = 10;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs runs = InsertReruns(&rng, graph, RandomOrder(&rng, graph), options.op_count);
    if (!FlatSimulator(problem).IsValid(runs)) continue;
    const int64_t flat = PeakOf(problem, runs);
    Simulator simulator(graph);
    const Result<Simulation> repaired = simulator.Run(RerunAliases(graph, runs));
    REQUIRE(repaired.ok());
    CHECK(repaired->peak.count() <= flat);
    helped += simulator.Run(runs)->peak.count() > flat ? 1 : 0;
  }
  CHECK(helped > 5);
}

TEST_CASE("best: checking aliases once finds those that a walk at each read finds") {
  int longer = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(3, 30));
    options.percent_aliases = static_cast<int>(rng.Between(30, 90));
    options.percent_two_writes = static_cast<int>(rng.Between(0, 40));
    const JointGraph graph = MakeRandomStep(&rng, options);
    const Runs runs = InsertReruns(&rng, graph, RandomOrder(&rng, graph), 2 * options.op_count);
    const Runs repaired = RerunAliases(graph, runs);
    REQUIRE(repaired == NaiveAliasRuns(graph).Run(runs));
    longer += repaired.size() > runs.size() ? 1 : 0;
  }
  CHECK(longer > 200);
}

TEST_CASE("best: a chain of aliases is walked once, not for each read, and asks for a stop") {
  constexpr int64_t kCount = 20'000;
  const JointGraph graph = ChainOfAliases(kCount);
  int64_t polls = 0;
  const StopScope scope({}, [&](int64_t) { ++polls; });
  CHECK(RerunAliases(graph, OwnOrder(graph)) == OwnOrder(graph));
  CHECK(polls >= kCount);
  CHECK(polls <= 5 * kCount);
}

TEST_CASE("best: if the start of a chain of aliases was made again, so is all of it") {
  constexpr int64_t kCount = 200;
  const JointGraph graph = ChainOfAliases(kCount);
  Runs runs = OwnOrder(graph);
  runs.insert(runs.end() - 1, OpId(0));
  Runs expected = OwnOrder(graph);
  expected.pop_back();
  const Runs again = OwnOrder(graph);
  expected.insert(expected.end(), again.begin(), again.end());
  CHECK(RerunAliases(graph, runs) == expected);
}

TEST_CASE("best: without aliases no runs are added") {
  Rng rng(1);
  const JointGraph graph = MakeRandomStep(&rng, {});
  const Runs runs = InsertReruns(&rng, graph, RandomOrder(&rng, graph), 10);
  CHECK(RerunAliases(graph, runs) == runs);
}

}  // namespace ckplan
