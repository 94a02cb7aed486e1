#include "lib/planning/algorithms/best/run_sequence.h"

#include <doctest/doctest.h>

#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/random_steps.h"

namespace ckplan {
namespace {

// Changes a sequence at random such that it stays a plan.
class Changer {
 public:
  Changer(const RunProblem& problem, RunSequence* sequence, uint64_t seed)
      : problem_(problem), sequence_(*sequence), rng_(seed) {}

  void ChangeOnce() {
    const auto op = static_cast<int32_t>(rng_.Between(0, problem_.op_count - 1));
    const std::span<const int32_t> runs = sequence_.RunsOf(op);
    const auto k = static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(runs.size()) - 1));
    const int64_t kind = rng_.Between(0, 2);
    if (kind == 0) Shift(op, runs[k], sequence_.WindowOf(op, k));
    if (kind == 1 && sequence_.MayErase(op, k)) sequence_.Erase(runs[k]);
    if (kind == 2 && problem_.may_repeat[static_cast<size_t>(op)] && runs.size() < 5) Insert(op);
  }

 private:
  void Shift(int32_t op, int32_t from, RunSequence::Window window) {
    if (window.before - window.after < 2) return;
    const auto to = static_cast<int32_t>(rng_.Between(window.after + 1, window.before - 1));
    CHECK(sequence_.OpAt(from) == op);
    if (sequence_.OpAt(to) < 0) sequence_.Shift(from, to);
  }
  void Insert(int32_t op) {
    const int32_t low = sequence_.ReadsReadyAt(op) + 1;
    const auto to = static_cast<int32_t>(rng_.Between(low, sequence_.slot_count() - 1));
    if (sequence_.OpAt(to) < 0) sequence_.Insert(op, to);
  }

  const RunProblem& problem_;
  RunSequence& sequence_;
  Rng rng_;
};

}  // namespace

TEST_CASE("best: a changing sequence has the peak and the cost of a full simulation") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(2, 30));
    options.percent_in_place = 30;
    options.percent_two_writes = 20;
    options.percent_single_runs = 15;
    const OpId loss(static_cast<int32_t>(rng.Between(0, options.op_count - 1)));
    const JointGraph graph = WithLoss(MakeRandomStep(&rng, options), loss);
    const RunProblem problem(graph, {rng.Between(0, 3), loss.index()});
    FlatSimulator simulator(problem);
    RunSequence sequence(problem, RandomOrder(&rng, graph));
    Changer changer(problem, &sequence, seed);
    for (int i = 0; i < 400; ++i) {
      const Runs before = sequence.ToRuns();
      for (auto count = rng.Between(1, 4); count > 0; --count) {
        changer.ChangeOnce();
        if (rng.Chance(30)) sequence.Update();
      }
      sequence.Update();
      const Runs runs = sequence.ToRuns();
      REQUIRE(simulator.IsValid(runs));
      const FlatSimulation expected = simulator.Run(runs);
      REQUIRE(sequence.peak() == expected.peak);
      REQUIRE(sequence.cost() == expected.cost);
      REQUIRE(sequence.run_count() == static_cast<int32_t>(runs.size()));
      REQUIRE(OpId(sequence.OpAt(sequence.PeakSlot())) == runs[expected.peak_step]);
      if (rng.Chance(50)) {
        sequence.Revert();
        REQUIRE(sequence.ToRuns() == before);
        REQUIRE(sequence.peak() == simulator.Run(before).peak);
      } else {
        sequence.Commit();
      }
      if (rng.Chance(5)) sequence.Respace();
    }
  }
}

TEST_CASE("best: a run may be erased exactly if the sequence is a plan without it") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = MakeRandomStep(&rng, {});
    const RunProblem problem(graph);
    const Runs runs = InsertReruns(&rng, graph, RandomOrder(&rng, graph), 8);
    const RunSequence sequence(problem, runs);
    FlatSimulator simulator(problem);
    for (int32_t op = 0; op < problem.op_count; ++op) {
      size_t k = 0;
      for (size_t step = 0; step < runs.size(); ++step) {
        if (runs[step] != OpId(op)) continue;
        Runs without = runs;
        without.erase(without.begin() + static_cast<int64_t>(step));
        CHECK(sequence.MayErase(op, k) == simulator.IsValid(without));
        ++k;
      }
    }
  }
}

}  // namespace ckplan
