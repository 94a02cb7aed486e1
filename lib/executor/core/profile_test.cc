#include "lib/executor/core/profile.h"

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/testing/steps.h"

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

// A backend on which every kernel takes one tick of its own clock, fused or not.
class TickingBackend final : public ForwardingBackend {
 public:
  TickingBackend() : ForwardingBackend(MakeTestBackend()) {}

  std::unique_ptr<DeviceClock> MakeClock() override {
    class Clock final : public DeviceClock {
     public:
      explicit Clock(const int64_t& ticks) : ticks_(ticks) {}
      size_t Mark() override {
        marks_.push_back(ticks_);
        return marks_.size() - 1;
      }
      double SecondsBetween(size_t first, size_t second) override {
        return static_cast<double>(marks_[second] - marks_[first]);
      }

     private:
      const int64_t& ticks_;
      std::vector<int64_t> marks_;
    };
    return std::make_unique<Clock>(ticks_);
  }
  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) override {
    CKPLAN_ASSIGN_OR_RETURN(auto op, ForwardingBackend::Prepare(spec));
    return std::unique_ptr<PreparedOp>(std::make_unique<TickingOp>(std::move(op), ticks_));
  }
  std::unique_ptr<FusedForward> Fuse(std::span<const ChainedOp> chain) override {
    std::vector<ChainedOp> inner(chain.begin(), chain.end());
    for (ChainedOp& each : inner) each.op = static_cast<TickingOp*>(each.op)->inner();
    return std::make_unique<TickingFused>(ForwardingBackend::Fuse(inner), ticks_);
  }
  void AddScaled(void* into, const void* from, ElementType type, float scale,
                 int64_t count) override {
    ++ticks_;
    ForwardingBackend::AddScaled(into, from, type, scale, count);
  }
  void Copy(void* to, const void* from, int64_t bytes) override {
    ++ticks_;
    ForwardingBackend::Copy(to, from, bytes);
  }

 private:
  class TickingOp final : public PreparedOp {
   public:
    TickingOp(std::unique_ptr<PreparedOp> op, int64_t& ticks) : op_(std::move(op)), ticks_(ticks) {}
    PreparedOp* inner() const { return op_.get(); }
    OpWorkspace workspace() const override { return op_->workspace(); }
    void Forward(const ForwardCall& call) override {
      ++ticks_;
      op_->Forward(call);
    }
    void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
      ++ticks_;
      op_->BackwardInput(call, position, gradient);
    }

   private:
    std::unique_ptr<PreparedOp> op_;
    int64_t& ticks_;
  };
  class TickingFused final : public FusedForward {
   public:
    TickingFused(std::unique_ptr<FusedForward> run, int64_t& ticks)
        : run_(std::move(run)), ticks_(ticks) {}
    void Begin(const ForwardCall& call) override { run_->Begin(call); }
    void Run(std::span<const ForwardCall> calls) override {
      ++ticks_;
      run_->Run(calls);
    }

   private:
    std::unique_ptr<FusedForward> run_;
    int64_t& ticks_;
  };

  int64_t ticks_ = 0;
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

TEST_CASE(
    "profile: the times of all nodes add up to those of the step, in which operators run fused") {
  TickingBackend backend;
  SmallStep small(backend, SmallNet(), 2);
  const PlacedProgram keep_all = small.KeepAll();
  const FusedProgram fused(keep_all.program, small.step(), small.operators(), backend);
  CHECK(fused.groups().empty() == (backend.name() == "cpu"));
  ProfileOptions options;
  options.runs = 1;
  const auto nodes =
      ProfileNodes(backend, small.step(), small.operators(), small.constants(), options);
  REQUIRE(nodes.ok());
  double predicted = 0;
  for (const ProfiledNode& node : *nodes) predicted += node.forward_seconds + node.backward_seconds;
  for (const FusedProgram::Group& group : fused.groups()) {
    for (const Call& call : group.fusion.calls) {
      const ProfiledNode& node = (*nodes)[static_cast<size_t>(call.node.index())];
      CHECK(node.forward_seconds ==
            doctest::Approx(1 / static_cast<double>(group.fusion.calls.size())));
    }
  }
  const ValidationReport report = small.Validate(keep_all, keep_all, /*timed_runs=*/1);
  for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
  CHECK(report.timing == (backend.IsAsynchronous() ? StepTiming::kSteps : StepTiming::kOperators));
  CHECK(report.keep_all.operator_seconds == report.keep_all.seconds);
  CHECK(report.keep_all.seconds.value_or(0) == doctest::Approx(predicted));
}

TEST_CASE("stopwatch: the median of an even count is one of its values") {
  CHECK(Median({}) == 0);
  CHECK(Median({3, 1, 2}) == 2);
  CHECK(Median({4, 1, 3, 2}) == 3);
}

}  // namespace ckplan
