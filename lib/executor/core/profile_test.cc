#include "lib/executor/core/profile.h"

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/testing.h"

namespace ckplan {
namespace {

constexpr uint64_t kStopwatchSeed = 4;

// Counts the waits for the device.
class WatchedBackend final : public ForwardingBackend {
 public:
  WatchedBackend() : ForwardingBackend(MakeTestBackend()) {}
  void Synchronize() override {
    ++waits;
    ForwardingBackend::Synchronize();
  }
  int waits = 0;
};

class TimedStep {
 public:
  TimedStep() : small_(backend_, SmallNet(), 2) {
    Rng rng(3);
    plan_ = small_.Random(rng, 50);
  }

  const StepGraph& step() const { return small_.step(); }
  WatchedBackend& backend() { return backend_; }

  // Runs a step by a plan that recomputes, and returns how often it waited for the device.
  int Run(RunObserver* observer) {
    const Loss loss(LossKind::kGiven, kStopwatchSeed);
    Runner runner(backend_, step(), small_.operators(), small_.constants(), loss, kStopwatchSeed,
                  nullptr);
    const auto arena =
        ArenaMemory::Create(backend_, plan_.program, plan_.offsets, plan_.arena_bytes, false);
    REQUIRE(arena.ok());
    backend_.waits = 0;
    REQUIRE(runner.Run(plan_.program, **arena, observer).ok());
    return backend_.waits;
  }

 private:
  WatchedBackend backend_;
  SmallStep small_;
  PlacedProgram plan_;
};

double SumOf(const SecondsOfNodes& nodes) {
  double sum = 0;
  for (const NodeSeconds& node : nodes) sum += node.forward + node.recompute + node.backward;
  return sum;
}

}  // namespace

TEST_CASE("stopwatch: a timed step waits for the device no more often than any other step") {
  TimedStep timed;
  const int waits = timed.Run(nullptr);
  Stopwatch watch(timed.backend(), timed.step());
  CHECK(timed.Run(&watch) == waits);
  StepTimer timer(timed.backend());
  CHECK(timed.Run(&timer) == waits);
}

TEST_CASE("stopwatch: the actions take time, and the step takes no less than they do") {
  TimedStep timed;
  timed.Run(nullptr);
  // Watches the same step, so that no other work on the machine makes one longer than the other.
  class Both final : public RunObserver {
   public:
    explicit Both(TimedStep& timed)
        : timer(timed.backend()), watch(timed.backend(), timed.step()) {}
    Result<Done> Before(const Action& action, const RunState& state) override {
      CKPLAN_RETURN_IF_ERROR(timer.Before(action, state));
      return watch.Before(action, state);
    }
    Result<Done> After(const Action& action, const RunState& state) override {
      CKPLAN_RETURN_IF_ERROR(watch.After(action, state));
      return timer.After(action, state);
    }
    StepTimer timer;
    Stopwatch watch;
  } both(timed);
  timed.Run(&both);
  const SecondsOfNodes nodes = both.watch.Read();
  double recompute = 0;
  int forward = 0;
  for (const NodeSeconds& node : nodes) {
    recompute += node.recompute;
    forward += node.forward > 0 ? 1 : 0;
  }
  CHECK(forward > 0);
  CHECK(recompute > 0);
  CHECK(both.timer.Seconds() >= SumOf(nodes));
}

TEST_CASE("stopwatch: the median of an even count is one of its values") {
  CHECK(Median({}) == 0);
  CHECK(Median({3, 1, 2}) == 2);
  CHECK(Median({4, 1, 3, 2}) == 3);
}

}  // namespace ckplan
