#include "lib/planning/algorithms/best/offload_sequence.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/random_steps.h"

namespace ckplan {
namespace {

RunsAndLoads StepsOf(const std::vector<OpId>& runs) {
  RunsAndLoads steps;
  for (const OpId op : runs) steps.push_back(op.index());
  return steps;
}

// Changes a sequence at random such that it stays a plan.
class StepChanger {
 public:
  StepChanger(const RunProblem& problem, const IdVector<ValueId, bool>& may_move,
              OffloadSequence* sequence, uint64_t seed)
      : problem_(problem), may_move_(may_move), sequence_(*sequence), rng_(seed) {}

  void ChangeOnce() {
    const int64_t kind = rng_.Between(0, 2);
    if (kind == 0) Erase();
    if (kind == 1) InsertRun();
    if (kind == 2) InsertLoad();
  }

 private:
  void Erase() {
    const std::span<const int32_t> extra = sequence_.Extra();
    if (extra.empty()) return;
    const int32_t step = extra[At(Draw(0, static_cast<int32_t>(extra.size()) - 1))];
    sequence_.Erase(sequence_.SlotsOf(step).back());
  }
  void InsertRun() {
    const int32_t op = Draw(0, problem_.op_count - 1);
    if (!problem_.may_repeat[At(op)] || sequence_.SlotsOf(op).size() > 3) return;
    InsertAfter(op, std::max(sequence_.ReadyAt(op), sequence_.SlotsOf(op).front()));
  }
  void InsertLoad() {
    const int32_t value = Draw(0, problem_.value_count - 1);
    if (!may_move_[ValueId(value)] || sequence_.IsLoaded(value)) return;
    const std::span<const int32_t> reads = sequence_.ReadAt(value);
    if (reads.empty() || reads.back() - 2 <= sequence_.MadeAt(value).front()) return;
    const int32_t slot = Draw(sequence_.MadeAt(value).front() + 1, reads.back() - 1);
    if (sequence_.StepAt(slot) < 0) sequence_.Insert(LoadOf(problem_, value), slot);
  }
  void InsertAfter(int32_t step, int32_t after) {
    if (after + 1 >= sequence_.slot_count()) return;
    const int32_t slot = Draw(after + 1, sequence_.slot_count() - 1);
    if (sequence_.StepAt(slot) < 0) sequence_.Insert(step, slot);
  }
  int32_t Draw(int32_t low, int32_t high) { return static_cast<int32_t>(rng_.Between(low, high)); }

  const RunProblem& problem_;
  const IdVector<ValueId, bool>& may_move_;
  OffloadSequence& sequence_;
  Rng rng_;
};

void CheckEqual(const CopyTask& task, const CopyTask& expected) {
  CHECK(task.cost == expected.cost);
  CHECK(task.bytes == expected.bytes);
  REQUIRE(task.absences.size() == expected.absences.size());
  for (size_t i = 0; i < task.absences.size(); ++i) {
    const Absence& a = task.absences[i];
    const Absence& b = expected.absences[i];
    CHECK(a.value == b.value);
    CHECK(a.made == b.made);
    CHECK(a.last_read == b.last_read);
    CHECK(a.gone_by == b.gone_by);
    CHECK(a.back_after == b.back_after);
    CHECK(a.first_read == b.first_read);
  }
}

struct RandomCase {
  explicit RandomCase(uint64_t seed, int percent_aliases)
      : rng(seed), graph(Draw(percent_aliases)) {
    link.out_bytes_per_second = rng.Between(1, 40) * 100'000'000;
    link.in_bytes_per_second = rng.Between(1, 40) * 100'000'000;
    link.latency_ns = rng.Between(0, 3);
    if (rng.Chance(30)) link.duplex = Duplex::kHalf;
  }
  JointGraph Draw(int percent_aliases) {
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(2, 30));
    options.percent_in_place = 30;
    options.percent_two_writes = 20;
    options.percent_single_runs = 15;
    options.percent_aliases = percent_aliases;
    return MakeRandomStep(&rng, options);
  }

  Rng rng;
  JointGraph graph;
  Link link;
};

}  // namespace

TEST_CASE("offload: a changing sequence is as one that is read from the start") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomCase random(seed, 0);
    const RunProblem problem(random.graph);
    const IdVector<ValueId, bool> may_move = MovableValues(random.graph);
    OffloadSequence sequence(problem, StepsOf(RandomOrder(&random.rng, random.graph)));
    StepChanger changer(problem, may_move, &sequence, seed);
    for (int i = 0; i < 200; ++i) {
      const RunsAndLoads before = sequence.ToSteps();
      for (auto count = random.rng.Between(1, 4); count > 0; --count) {
        changer.ChangeOnce();
        if (random.rng.Chance(30)) sequence.Update();
      }
      sequence.Update();
      const RunsAndLoads steps = sequence.ToSteps();
      const CopyTask expected = CopyTaskOf(problem, steps);
      CheckEqual(sequence.Task(), expected);
      REQUIRE(sequence.peak() == PeakOf(expected));
      if (random.rng.Chance(40)) {
        sequence.Revert();
        REQUIRE(sequence.ToSteps() == before);
        REQUIRE(sequence.peak() == PeakOf(CopyTaskOf(problem, before)));
      } else {
        sequence.Commit();
      }
      if (random.rng.Chance(5)) {
        if (sequence.has_changes()) sequence.Commit();
        sequence.Respace();
      }
    }
  }
}

TEST_CASE("offload: schedules with copies are plans, and take what the scheduler says") {
  int moved = 0;
  int late = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const int percent_aliases = seed % 2 == 0 ? 0 : 40;
    RandomCase random(seed, percent_aliases);
    const RunProblem problem(random.graph);
    const IdVector<ValueId, bool> may_move = MovableValues(random.graph);
    OffloadSequence sequence(problem, StepsOf(RandomOrder(&random.rng, random.graph)));
    StepChanger changer(problem, may_move, &sequence, seed);
    for (int i = 0; i < 30; ++i) {
      changer.ChangeOnce();
      sequence.Update();
      const RunsAndLoads steps = sequence.ToSteps();
      const CopyTask task = CopyTaskOf(problem, steps);
      sequence.Commit();
      const int64_t budget = PeakOf(task) + random.rng.Between(0, 30);
      CopyScheduler scheduler(random.link, random.rng.Between(50, 300));
      const CopyPlan& plan = scheduler.Run(task, budget);
      REQUIRE(plan.fits);
      const Schedule schedule =
          RerunAliases(random.graph, ScheduleWithCopies(problem, steps, plan));
      const Result<Simulation> measured =
          Simulator(TrainingStep(random.graph).WithLink(&random.link)).Run(schedule);
      REQUIRE_MESSAGE(measured.ok(), (measured.ok() ? "" : measured.error().message));
      // Memory that aliases hold may need more; searches measure what they return.
      if (percent_aliases == 0) CHECK(measured->peak.count() <= budget);
      CHECK(measured->host_peak.count() == plan.host_peak);
      CHECK(measured->overhead.count() == plan.end - random.graph.cost().count());
      moved += task.absences.empty() ? 0 : 1;
      late += measured->stall.count() > 0 ? 1 : 0;
    }
  }
  CHECK(moved > 3'000);
  CHECK(late > 500);
}

}  // namespace ckplan
