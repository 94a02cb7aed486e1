#include "lib/planning/plan/accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/planning/plan/caching_allocator.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

// The optimizer allocates its state at the end of the first step. From the third step on, nothing
// changes.
constexpr int kRehearsedSteps = 3;
// Steps that fit in one size may not fit in a larger one, so the minimum is searched upwards: each
// failed attempt reports the next size at which the steps would run differently. After this many
// allocations in total, the search tries kSizesTried sizes and then halves the gap below the best
// one.
constexpr int64_t kMaxAllocations = 2'000'000;
constexpr int kSizesTried = 16;
constexpr int kHalvings = 6;

Bytes SumOf(const std::vector<Bytes>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Bytes(0));
}

Bytes SumOf(const std::vector<MemoryLine>& lines) {
  Bytes sum(0);
  for (const MemoryLine& line : lines) sum += line.bytes;
  return sum;
}

MemoryLine Line(std::string name, Bytes bytes, LineKind kind, std::string source) {
  return {std::move(name), bytes, bytes, bytes, kind, std::move(source)};
}

// True if constant gradients of parameters count from the moment they are computed.
bool CountsGradientsOnArrival(const TrainingStep& step, const PlanRequest& request) {
  return request.gradients == ParameterGradients::kAuto && !request.pipeline && !request.sharding &&
         step.micro_batches() <= 1;
}

// True for a gradient that has its own memory and counts as a constant.
bool IsConstantGradient(const JointGraph& graph, ValueId value) {
  return graph.value(value).kind == ValueKind::kParameterGradient &&
         graph.value(value).alias_of.is_none();
}

// Returns the bytes of the constant gradients that a run of `step` produces.
Bytes ConstantGradientBytes(const TrainingStep& of, const Step& step) {
  if (!of.is_joint()) {
    const bool is_backward = step.kind == StepKind::kBackward;
    return is_backward ? of.forward().node(step.node()).parameter_gradients : Bytes(0);
  }
  if (step.kind != StepKind::kRun) return Bytes(0);
  if (of.has_forward()) {
    const Step& origin = of.step_of()[static_cast<size_t>(step.node().index())];
    return ConstantGradientBytes(TrainingStep(of.forward()), origin);
  }
  Bytes gradient_bytes(0);
  for (const ValueId value : of.joint().op(step.node()).writes) {
    if (IsConstantGradient(of.joint(), value)) gradient_bytes += of.joint().value(value).bytes;
  }
  return gradient_bytes;
}

// Returns the memory of gradients and temporaries during the optimizer's step.
Bytes OptimizerStepMemory(const TrainingStep& step, const PlanRequest& request) {
  const Bytes gradients = std::max(step.optimized().bytes, step.constants().parameter_gradients);
  return gradients + SumOf(OptimizerStepBuffers(request, step.optimized()));
}

// Allocates a buffer or releases an earlier one. Ticks are the timeline's.
struct MemoryEvent {
  int32_t step = 0;
  int64_t tick = 0;
  size_t buffer = 0;
  bool is_release = false;
};

// What a schedule allocates and frees, in order.
struct StepEvents {
  std::vector<Bytes> sizes;  // One for each buffer.
  std::vector<MemoryEvent> events;
  std::vector<size_t> left;  // Buffers released after the optimizer's step.
  Bytes arriving;            // The sum of the constant gradients.
  Bytes peak;
  Bytes peak_without_workspaces;
  Bytes peak_without_arriving;
};

class EventReader {
 public:
  EventReader(const AccountedStep& of, const Schedule& schedule, const Timeline& timeline)
      : of_(of),
        schedule_(schedule),
        timeline_(timeline),
        is_left_(timeline.buffers.size(), false) {
    MarkResults(of.step);
  }

  StepEvents Read() && {
    for (size_t i = 0; i < timeline_.buffers.size(); ++i) {
      const Buffer& buffer = timeline_.buffers[i];
      read_.sizes.push_back(buffer.bytes);
      read_.events.push_back({buffer.first_step, buffer.begin, i, false});
      if (is_left_[i]) {
        read_.left.push_back(i);
      } else {
        read_.events.push_back({buffer.last_step, buffer.end, i, true});
      }
    }
    AddArrivingGradients();
    std::sort(read_.events.begin(), read_.events.end(),
              [](const MemoryEvent& a, const MemoryEvent& b) {
                return std::pair(a.step, a.tick) < std::pair(b.step, b.tick);
              });
    MeasurePeaks();
    return std::move(read_);
  }

 private:
  // A joint graph's results stay in memory: the last version of each.
  void MarkResults(const TrainingStep& step) {
    if (!step.is_joint()) return;
    std::vector<int32_t> last(step.tensor_count(), -1);
    for (const Version& version : timeline_.versions) {
      if (version.buffer < 0) continue;
      last[static_cast<size_t>(step.StorageOf(version.tensor).index())] = version.buffer;
    }
    for (const ValueId result : step.joint().results()) {
      const int32_t buffer = last[static_cast<size_t>(step.StorageOf(result).index())];
      if (buffer >= 0) is_left_[static_cast<size_t>(buffer)] = true;
    }
  }

  // Adds each constant gradient where its operation first runs. They stay until the optimizer's
  // step ends.
  void AddArrivingGradients() {
    if (ArrivingGradients(of_.step, of_.request) == Bytes(0)) return;
    constexpr int64_t kBeforeAllOfItsStep = -1;
    std::vector<bool> has_run(of_.step.node_count(), false);
    for (size_t k = 0; k < schedule_.steps.size(); ++k) {
      const Step& step = schedule_.steps[k];
      const Bytes gradient_bytes = ConstantGradientBytes(of_.step, step);
      if (gradient_bytes == Bytes(0) || has_run[static_cast<size_t>(step.node().index())]) continue;
      has_run[static_cast<size_t>(step.node().index())] = true;
      read_.events.push_back(
          {static_cast<int32_t>(k), kBeforeAllOfItsStep, read_.sizes.size(), false});
      read_.left.push_back(read_.sizes.size());
      read_.sizes.push_back(gradient_bytes);
      read_.arriving += gradient_bytes;
    }
  }

  void MeasurePeaks() {
    Bytes live(0);
    Bytes workspaces(0);
    Bytes arrived(0);
    for (const MemoryEvent& event : read_.events) {
      const Bytes size = read_.sizes[event.buffer];
      const Bytes change = event.is_release ? Bytes(0) - size : size;
      live += change;
      if (event.buffer >= timeline_.buffers.size()) {
        arrived += change;
      } else if (timeline_.buffers[event.buffer].kind == BufferKind::kWorkspace) {
        workspaces += change;
      }
      read_.peak = std::max(read_.peak, live);
      read_.peak_without_workspaces = std::max(read_.peak_without_workspaces, live - workspaces);
      read_.peak_without_arriving = std::max(read_.peak_without_arriving, live - arrived);
    }
  }

  const AccountedStep& of_;
  const Schedule& schedule_;
  const Timeline& timeline_;
  std::vector<bool> is_left_;
  StepEvents read_;
};

// Buffers that exist outside the schedule.
struct Surroundings {
  std::vector<Bytes> constants;      // All the time: parameters, inputs, cuBLAS's workspace.
  std::vector<Bytes> state;          // From the end of the first step.
  std::vector<Bytes> micro_batches;  // Other micro-batches, until the optimizer's step.
  std::vector<Bytes> temporaries;    // Of the optimizer's step.
};

Surroundings SurroundingsOf(const TrainingStep& step, const PlanRequest& request, Bytes cublas,
                            Bytes arriving, Bytes other_micro_batches) {
  const ConstantMemory constants = step.constants();
  const Optimized optimized = step.optimized();
  Surroundings found;
  found.constants =
      GradientBuffers(optimized);  // Trained parameters are as large as their gradients.
  const Bytes trained = SumOf(found.constants);
  if (trained > constants.parameters) found.constants.clear();
  found.constants.push_back(constants.parameters - SumOf(found.constants));
  const Bytes throughout = constants.parameter_gradients - arriving;
  if (arriving == Bytes(0) && throughout > Bytes(0)) {
    std::vector<Bytes> gradients = GradientBuffers(optimized);
    const Bytes rest = throughout - SumOf(gradients);
    if (rest > Bytes(0)) gradients.push_back(rest);
    found.constants.insert(found.constants.end(), gradients.begin(), gradients.end());
  } else if (throughout > Bytes(0)) {
    found.constants.push_back(throughout);
  }
  for (const Bytes bytes : {constants.inputs, constants.unsharded, cublas}) {
    found.constants.push_back(bytes);
  }
  if (other_micro_batches > Bytes(0)) found.micro_batches = {other_micro_batches};
  found.state = OptimizerStateBuffers(request, optimized);
  found.temporaries = OptimizerStepBuffers(request, optimized);
  return found;
}

// The peak memory that the allocator reserved and that its callers requested.
struct Rehearsed {
  bool has_room = true;
  Bytes reserved;
  Bytes requested;
  Bytes next_capacity;  // The next larger one at which the steps would run differently.
};

// Runs a few training steps through the allocator, as PyTorch does.
class Rehearsal {
 public:
  Rehearsal(const Surroundings& around, const StepEvents& step, Bytes capacity)
      : around_(around), step_(step), allocator_(capacity), blocks_(step.sizes.size()) {}

  Rehearsed Run() && {
    const bool has_room = RunSteps();
    return {has_room, allocator_.peak_reserved(), allocator_.peak_requested(),
            allocator_.next_capacity()};
  }

 private:
  using BlockId = CachingAllocator::BlockId;

  // Returns false if the capacity is too small.
  bool RunSteps() {
    if (!AllocateAll(around_.constants)) return false;
    for (int i = 0; i < kRehearsedSteps; ++i) {
      const auto others = AllocateAll(around_.micro_batches);
      if (!others || !RunStep()) return false;
      for (const auto block : *others) allocator_.Release(block);
      if (i == 0 && !AllocateAll(around_.state)) return false;
      const auto temporaries = AllocateAll(around_.temporaries);
      if (!temporaries) return false;
      for (const auto block : *temporaries) allocator_.Release(block);
      for (const size_t buffer : step_.left) allocator_.Release(blocks_[buffer]);
    }
    return true;
  }

  std::optional<std::vector<BlockId>> AllocateAll(const std::vector<Bytes>& sizes) {
    std::vector<BlockId> blocks;
    for (const Bytes size : sizes) {
      const std::optional<BlockId> block = allocator_.Allocate(size);
      if (!block) return std::nullopt;
      blocks.push_back(*block);
    }
    return blocks;
  }

  bool RunStep() {
    for (const MemoryEvent& event : step_.events) {
      BlockId& block = blocks_[event.buffer];
      if (event.is_release) {
        allocator_.Release(block);
        continue;
      }
      const std::optional<BlockId> allocated = allocator_.Allocate(step_.sizes[event.buffer]);
      if (!allocated) return false;
      block = *allocated;
    }
    return true;
  }

  const Surroundings& around_;
  const StepEvents& step_;
  CachingAllocator allocator_;
  std::vector<BlockId> blocks_;
};

// Finds the smallest capacity in which the steps fit.
class MinCapacity {
 public:
  MinCapacity(const Surroundings& around, const StepEvents& step) : around_(around), step_(step) {}

  // Returns the run with the smallest capacity above `too_little`. `ample` is a run that had
  // enough.
  Rehearsed FindAbove(Bytes too_little, const Rehearsed& ample) const {
    too_little = std::max(too_little, ample.requested - Bytes(1));
    const auto events = static_cast<int64_t>(step_.events.size());
    const int64_t max_attempts = kMaxAllocations / (kRehearsedSteps * (events + 1));
    for (int64_t i = 0; i < max_attempts; ++i) {
      const Rehearsed held = Run(too_little + Bytes(1));
      if (held.has_room) return held;
      too_little = held.next_capacity - Bytes(1);
    }
    return SearchBetween(too_little, ample);
  }

 private:
  Rehearsed Run(Bytes capacity) const { return Rehearsal(around_, step_, capacity).Run(); }

  Rehearsed SearchBetween(Bytes too_little, Rehearsed held) const {
    const Bytes least = too_little;
    const int64_t range = held.reserved.count() - least.count();
    for (int64_t i = 1; i < kSizesTried; ++i) {
      const Bytes size = least + Bytes(range / kSizesTried * i);
      const Rehearsed less = Run(size);
      if (less.has_room) {
        held = less;
        break;
      }
      too_little = size;
    }
    for (int i = 0; i < kHalvings && too_little + Bytes(1) < held.reserved; ++i) {
      const Bytes middle((too_little.count() + held.reserved.count()) / 2);
      const Rehearsed less = Run(middle);
      if (less.has_room) {
        held = less;
      } else {
        too_little = middle;
      }
    }
    return held;
  }

  const Surroundings& around_;
  const StepEvents& step_;
};

// Returns the most that the steps request of the allocator at a time.
Bytes PeakRequested(const Surroundings& around, const StepEvents& step) {
  Bytes left(0);
  for (const size_t buffer : step.left) left += step.sizes[buffer];
  return SumOf(around.constants) + SumOf(around.state) + SumOf(around.micro_batches) +
         std::max(step.peak, left + SumOf(around.temporaries));
}

// Returns the memory that the allocator reserves beyond what was requested. If the steps don't fit
// in the capacity, it uses the smallest larger capacity that it finds (`seeks_least`), or no limit.
Bytes AllocatorOverhead(const Surroundings& around, const StepEvents& step,
                        std::optional<Bytes> capacity, bool seeks_least) {
  if (capacity && *capacity > Bytes(0)) {
    const Rehearsed held = Rehearsal(around, step, *capacity).Run();
    if (held.has_room) return held.reserved - held.requested;
  }
  Rehearsed held = Rehearsal(around, step, CachingAllocator::kNoLimit).Run();
  if (!held.has_room) return Bytes(0);
  if (capacity && seeks_least) held = MinCapacity(around, step).FindAbove(*capacity, held);
  return held.reserved - held.requested;
}

class Accountant {
 public:
  Accountant(const AccountedStep& of, const StepEvents& events, Bytes peak)
      : step_(of.step),
        request_(of.request),
        buffers_(of.buffers),
        seeks_least_(of.seeks_least),
        events_(events),
        // The rest of the peak is what the other micro-batches in flight keep.
        other_micro_batches_(std::max(peak - events.peak_without_arriving, Bytes(0))),
        constants_(of.step.constants()) {}

  Accounting Account() && {
    AddConstants();
    AddStep();
    if (request_.reserve) {
      found_.outside = {Line("reserve", *request_.reserve, LineKind::kAllowance, "--reserve")};
    } else {
      AddOutside();
    }
    return std::move(found_);
  }

  // Like Account().need() <= memory, but ends as soon as the answer is known.
  bool Fits() && {
    AddConstants();
    AddStep();
    const Bytes memory = request_.memory.bytes;
    const Bytes tensors = found_.tensor_bytes();
    if (request_.reserve) return tensors + *request_.reserve <= memory;
    const std::vector<MemoryLine> fixed = OutsideOf(request_);
    const Bytes spare = memory - (tensors + WorkspacesLine().bytes + SumOf(fixed));
    if (spare < Bytes(0)) return false;
    const Bytes cublas = fixed.front().bytes;
    const Surroundings around =
        SurroundingsOf(step_, request_, cublas, events_.arriving, other_micro_batches_);
    const Bytes capacity = memory - (SumOf(fixed) - cublas);
    const Rehearsed held = Rehearsal(around, events_, capacity).Run();
    if (held.has_room) return held.reserved - held.requested <= spare;
    // Without a limit, the allocator reserves more than the capacity.
    if (capacity - PeakRequested(around, events_) >= spare) return false;
    return AllocatorOverhead(around, events_, std::nullopt, false) <= spare;
  }

 private:
  void AddConstants() {
    const std::string source = "the model";
    AddTensors("parameters", constants_.parameters - buffers_, LineKind::kExact, source);
    AddTensors("buffers", buffers_, LineKind::kExact, source);
    AddTensors("inputs", constants_.inputs, LineKind::kExact, source);
    AddTensors("optimizer state", OptimizerState(request_, step_.optimized()), LineKind::kExact,
               fmt::format("{}'s state for each trained parameter", NameOf(request_.optimizer)));
    if (constants_.unsharded > Bytes(0)) {
      AddTensors("whole at a time", constants_.unsharded, LineKind::kFormula,
                 fmt::format("{} with its defaults", TextOf(*request_.sharding)));
    }
  }

  void AddStep() {
    const Bytes throughout = constants_.parameter_gradients - events_.arriving;
    const Bytes backward = throughout + events_.peak_without_workspaces + other_micro_batches_;
    const Bytes optimizer = OptimizerStepMemory(step_, request_);
    workspaces_ = std::max(backward + WorkspaceBytes(), optimizer) - std::max(backward, optimizer);
    if (optimizer > backward) {
      AddTensors("step", optimizer, LineKind::kExact,
                 "gradients and the optimizer step's temporaries");
      return;
    }
    AddTensors("step", backward, LineKind::kExact,
               throughout > Bytes(0) ? "activations, with all gradients of parameters throughout"
                                     : "activations, with gradients as they arrive");
  }

  void AddOutside() {
    std::vector<MemoryLine> fixed = OutsideOf(request_);
    const Bytes cublas = fixed.front().bytes;
    std::optional<Bytes> capacity;
    if (request_.memory.is_given()) {
      capacity = request_.memory.bytes - (SumOf(fixed) - cublas);
    }
    found_.outside.push_back(WorkspacesLine());
    const Surroundings around =
        SurroundingsOf(step_, request_, cublas, events_.arriving, other_micro_batches_);
    found_.outside.push_back(
        Line("allocator", AllocatorOverhead(around, events_, capacity, seeks_least_),
             LineKind::kFormula, "replay of PyTorch's CUDACachingAllocator.cpp"));
    std::move(fixed.begin(), fixed.end(), std::back_inserter(found_.outside));
  }

  MemoryLine WorkspacesLine() const {
    if (!request_.workspaces.empty()) {
      return Line("workspaces", workspaces_, LineKind::kFormula, "--workspaces");
    }
    if (WorkspaceBytes() > Bytes(0)) {
      return Line("workspaces", workspaces_, LineKind::kFormula,
                  "what operations allocate in between");
    }
    return Line("workspaces", Bytes(0), LineKind::kAllowance,
                "not counted; --workspaces FILE counts them");
  }

  Bytes WorkspaceBytes() const { return events_.peak - events_.peak_without_workspaces; }

  void AddTensors(std::string name, Bytes bytes, LineKind kind, std::string source) {
    found_.tensors.push_back(Line(std::move(name), bytes, kind, std::move(source)));
  }

  const TrainingStep& step_;
  const PlanRequest& request_;
  const Bytes buffers_;
  const bool seeks_least_;
  const StepEvents& events_;
  const Bytes other_micro_batches_;
  const ConstantMemory constants_;
  Bytes workspaces_;
  Accounting found_;
};

}  // namespace

Bytes Accounting::tensor_bytes() const { return SumOf(tensors); }
Bytes Accounting::outside_bytes() const { return SumOf(outside); }

Accounting AccountFor(const AccountedStep& of, const Schedule& schedule, Bytes peak) {
  const Timeline timeline = BuildTimeline(of.step, schedule);
  const StepEvents events = EventReader(of, schedule, timeline).Read();
  return Accountant(of, events, peak).Account();
}

Bytes MinMemoryFor(const AccountedStep& of, const Schedule& schedule, Bytes peak) {
  PlanRequest request = of.request;
  request.memory = Budget::Of(Bytes(1));  // Too small, so that the minimum is searched.
  return AccountFor({of.step, request, of.buffers}, schedule, peak).need();
}

bool FitsMemory(AccountedStep of, const Schedule& schedule, Bytes peak) {
  const Timeline timeline = BuildTimeline(of.step, schedule);
  const StepEvents events = EventReader(of, schedule, timeline).Read();
  return Accountant(of, events, peak).Fits();
}

Bytes ArrivingGradients(const TrainingStep& step, const PlanRequest& request) {
  if (!CountsGradientsOnArrival(step, request)) return Bytes(0);
  Bytes arriving(0);
  if (step.has_forward()) {
    for (const Node& node : step.forward().nodes()) arriving += node.parameter_gradients;
  } else {
    for (const ValueId value : step.joint().values().ids()) {
      const bool is_made = !step.joint().value(value).producer.is_none();
      if (is_made && IsConstantGradient(step.joint(), value)) {
        arriving += step.joint().value(value).bytes;
      }
    }
  }
  // A caller may have changed the graph's total without changing its nodes.
  return arriving <= step.constants().parameter_gradients ? arriving : Bytes(0);
}

Bytes MinNeed(const TrainingStep& step, const PlanRequest& request) {
  ConstantMemory rest = step.constants();
  rest.parameter_gradients = Bytes(0);
  return rest.parameters + rest.inputs + rest.unsharded +
         OptimizerState(request, step.optimized()) + OptimizerStepMemory(step, request) +
         OutsideInMemory(request);
}

}  // namespace ckplan
