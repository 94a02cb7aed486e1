#include "lib/problem/schedule/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/stop.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

// Sums live gradient bytes and tracks the highest sum since the last reset.
class ByteCounter {
 public:
  explicit ByteCounter(const TensorGraph& graph) : graph_(graph) {}

  void Allocate(int32_t /*buffer*/, TensorId gradient_of) {
    const Bytes bytes = graph_.tensor(gradient_of).bytes;
    sizes_.push_back(bytes);
    live_ += bytes;
    highest_ = std::max(highest_, live_);
  }
  void Release(int32_t buffer) { live_ -= sizes_[static_cast<size_t>(buffer)]; }

  void ResetHighest() { highest_ = live_; }
  Bytes live() const { return live_; }
  Bytes highest() const { return highest_; }

 private:
  const TensorGraph& graph_;
  std::vector<Bytes> sizes_;
  Bytes live_;
  Bytes highest_;
};

}  // namespace

// Measures a schedule of a forward graph with gradients and the memory of other micro-batches.
class Simulator::ForwardMeter : public PeakMeter {
 public:
  ForwardMeter(const StepTable& table, const GradientProfile& profile, int32_t loss)
      : PeakMeter(table),
        profile_(profile),
        loss_(loss),
        bytes_(table.bytes),
        tensors_(static_cast<int32_t>(table.bytes.size())) {}

  void Work(int32_t kind) {
    Measure(kind, kind < loss_ ? gradients_ : Of(profile_.during, kind) - freed_);
    if (kind >= loss_) gradients_ = Of(profile_.after, kind) - freed_;
  }
  void EndStep(int32_t kind) {
    if (kind >= 0) last_kind_ = kind;
    if (kind < 0 && FreeOf(kind) >= tensors_) {
      const Bytes bytes = Of(bytes_, FreeOf(kind) - tensors_);
      freed_ += bytes;
      gradients_ -= bytes;
    }
    if (last_kind_ == loss_) saved_ = live();  // Frees may follow the loss.
    PeakMeter::EndStep(kind);
  }

  // The memory in use after the loss, without gradients.
  Bytes saved() const { return saved_; }

 private:
  const GradientProfile& profile_;
  const int32_t loss_;
  const std::vector<Bytes>& bytes_;
  const int32_t tensors_;
  Bytes freed_;                        // Gradients released by frees.
  int32_t last_kind_ = Replay::kNone;  // The last step that is not a free.
  Bytes gradients_;
  Bytes saved_;
};

Simulator::Simulator(const TrainingStep& step)
    : of_(step), table_(TableOf(step)), replay_(table_) {}

Result<Simulation> Simulator::Run(const Schedule& schedule) {
  const bool has_transfers = HasTransfers(schedule);
  if (has_transfers && of_.is_joint()) AddTransfers(of_.joint(), &table_);
  CKPLAN_RETURN_IF_ERROR(CheckRuns(schedule));
  if (!of_.is_joint()) CKPLAN_RETURN_IF_ERROR(CheckOrder(schedule));
  const std::vector<int32_t> kinds = KindsOf(of_, schedule);
  if (const auto fault = replay_.Read(kinds, schedule.frees)) return FaultOf(schedule, *fault);
  CKPLAN_RETURN_IF_ERROR(CheckNeeded());
  if (has_transfers) return MeasureTransfers();
  if (of_.is_joint()) {
    PeakMeter meter(table_);
    replay_.Report(&meter);
    return Simulation{meter.peak(), meter.peak_step(), meter.cost(),
                      meter.cost() - of_.joint().cost()};
  }
  const TensorGraph& graph = of_.forward();
  if (FreesGradients(graph, schedule.frees)) CKPLAN_RETURN_IF_ERROR(CheckGradientFrees(schedule));
  UpdateProfile(schedule.frees);
  ForwardMeter meter(table_, profile_, KindOf(graph, Step::Loss()));
  replay_.Report(&meter);
  const Bytes others = (graph.micro_batches() - 1) * meter.saved();
  return Simulation{meter.peak() + others, meter.peak_step(), meter.cost(),
                    meter.cost() - graph.forward_cost(), others};
}

// Measures the schedule that the replay has read.
Simulation Simulator::MeasureTransfers() {
  PeakMeter meter(table_);
  HostMeter host(table_);
  TransferClock clock(table_, *of_.link());
  EachSink<PeakMeter, HostMeter, TransferClock> sinks(&meter, &host, &clock);
  replay_.Report(&sinks);
  Simulation simulation{meter.peak(), meter.peak_step(), meter.cost(),
                        clock.makespan() - of_.joint().cost()};
  simulation.stall = clock.stall();
  simulation.host_peak = host.peak();
  simulation.transferred = clock.transferred();
  return simulation;
}

Error Simulator::FaultOf(const Schedule& schedule, const ReplayFault& fault) const {
  const std::string tensor =
      fmt::format("{} \"{}\"", of_.tensor_word(), of_.NameOf(TensorId(fault.value)));
  switch (fault.kind) {
    case ReplayFault::Kind::kReadsAbsent:
      return StepError(schedule, fault.step, "reads " + tensor + ", which is not in memory");
    case ReplayFault::Kind::kFreesAbsent:
      return StepError(schedule, fault.step, "frees a tensor that is not in memory");
    case ReplayFault::Kind::kNotFreed:
      return StepError(schedule, fault.step, "writes a tensor that is already in memory");
    case ReplayFault::Kind::kCopyUnderWay:
      return StepError(schedule, fault.step,
                       "changes " + tensor + " while its copy to the host is under way");
    case ReplayFault::Kind::kNoCopy:
      return StepError(schedule, fault.step, "has no copy to the host to wait for");
    case ReplayFault::Kind::kNotOnHost:
      return StepError(schedule, fault.step, "loads a value that is not on the host");
    case ReplayFault::Kind::kUnreadLoad:
      return StepError(schedule, fault.step, "loads a value that no run reads");
    case ReplayFault::Kind::kNeverDropped:
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("schedule: {} is copied to the host and never dropped", tensor));
    case ReplayFault::Kind::kNeverFreed:
      break;
  }
  return MakeError(ErrorCode::kInvalidInput, fmt::format("schedule: {} is never freed", tensor));
}

Error Simulator::StepError(const Schedule& schedule, size_t step, const std::string& fault) const {
  static constexpr const char* kVerbs[] = {"forward", "loss", "backward", "free", "free-gradient",
                                           "run",     "out",  "drop",     "in"};
  const Step& s = schedule.steps[step];
  std::string what = kVerbs[static_cast<size_t>(s.kind)];
  const auto index = static_cast<size_t>(s.index);
  const bool names_tensor = s.is_free() || s.is_transfer();
  if (names_tensor && index < of_.tensor_count()) {
    what += fmt::format(" of \"{}\"", of_.NameOf(s.tensor()));
  } else if (!names_tensor && s.kind != StepKind::kLoss && index < of_.node_count()) {
    what += fmt::format(" of \"{}\"", of_.NameOf(s.node()));
  }
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("schedule: step {} ({}) {}", step, what, fault));
}

// Counts the steps. Checks that the graph has them and allows their repetitions.
Result<Done> Simulator::CheckRuns(const Schedule& schedule) {
  runs_.assign(table_.reads.size(), 0);
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const auto index = static_cast<size_t>(step.index);
    if (step.is_free()) {
      const bool is_free_here = step.kind == StepKind::kFree ||
                                (!of_.is_joint() && FreesGradients(of_.forward(), schedule.frees));
      const bool may_free = schedule.frees == FreePolicy::kExplicit && index < of_.tensor_count();
      if (!may_free || !is_free_here) {
        return StepError(schedule, k, "frees something that this schedule must not free");
      }
      continue;
    }
    if (step.is_transfer()) {
      CKPLAN_RETURN_IF_ERROR(CheckTransfer(schedule, k));
      continue;
    }
    if ((step.kind == StepKind::kRun) != of_.is_joint()) {
      return StepError(schedule, k, "does not match the kind of graph");
    }
    if (step.kind != StepKind::kLoss && index >= of_.node_count()) {
      return StepError(schedule, k, "runs a node that the graph does not have");
    }
    const auto kind =
        static_cast<size_t>(of_.is_joint() ? step.index : KindOf(of_.forward(), step));
    if (runs_[kind]++ > 0 && !table_.may_repeat[kind]) {
      return StepError(schedule, k, "must not run twice");
    }
  }
  return Done{};
}

// Checks a transfer independently of other steps.
Result<Done> Simulator::CheckTransfer(const Schedule& schedule, size_t k) const {
  const Step& step = schedule.steps[k];
  if (!of_.is_joint()) return StepError(schedule, k, "does not match the kind of graph");
  if (of_.link() == nullptr) return StepError(schedule, k, "needs a link to the host");
  if (schedule.frees == FreePolicy::kExplicit)
    return StepError(schedule, k, "is not allowed with explicit frees");
  if (static_cast<size_t>(step.index) >= of_.tensor_count()) {
    return StepError(schedule, k, "moves a value that the graph does not have");
  }
  if (table_.may_move[static_cast<size_t>(step.index)]) return Done{};
  return StepError(schedule, k, "moves a result or a value without its own memory");
}

Result<Done> Simulator::CheckNeeded() const {
  for (size_t kind = 0; kind < runs_.size(); ++kind) {
    if (runs_[kind] > 0 || !table_.is_needed[kind]) continue;
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("schedule: {} must run but does not", NameOfKind(kind)));
  }
  return Done{};
}

// Returns the name of a kind of step for messages.
std::string Simulator::NameOfKind(size_t kind) const {
  const size_t nodes = of_.node_count();
  if (kind == nodes) return "the loss";
  const NodeId node(kind < nodes ? kind : kind - nodes - 1);
  return fmt::format("{}\"{}\"", kind < nodes ? "" : "the backward of ", of_.NameOf(node));
}

// Checks the order of backward steps.
Result<Done> Simulator::CheckOrder(const Schedule& schedule) {
  const size_t node_count = of_.node_count();
  std::vector<bool> has_run(node_count);
  order_.clear();
  backward_order_.clear();
  bool has_loss = false;
  bool is_mirrored = true;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind == StepKind::kLoss) {
      has_loss = true;
      is_mirrored &= order_.size() == node_count;
    } else if (step.kind == StepKind::kForward) {
      const auto index = static_cast<size_t>(step.index);
      if (!has_run[index]) order_.push_back(step.node());
      has_run[index] = true;
    } else if (step.kind == StepKind::kBackward) {
      if (!has_loss) return StepError(schedule, k, "comes before the loss");
      backward_order_.push_back(step.node());
      const size_t count = backward_order_.size();
      is_mirrored &= count <= order_.size() && order_[order_.size() - count] == step.node();
    }
  }
  return is_mirrored ? Done{} : CheckFreeOrder(schedule);
}

// Checks a schedule that is not mirrored against the rules in schedule.h.
Result<Done> Simulator::CheckFreeOrder(const Schedule& schedule) {
  const TensorGraph& graph = of_.forward();
  if (!precedence_) precedence_.emplace(graph);
  IdVector<NodeId, bool> has_run(graph.nodes().size());
  IdVector<NodeId, bool> has_run_backward(graph.nodes().size());
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind == StepKind::kForward) has_run[step.node()] = true;
    if (step.kind != StepKind::kBackward) continue;
    const NodeId id = step.node();
    if (!has_run[id]) return StepError(schedule, k, "comes before its node has run forward");
    for (const NodeId first : precedence_->after[id]) {
      if (has_run_backward[first]) continue;
      return StepError(schedule, k,
                       fmt::format("comes before that of \"{}\", which adds to a gradient first",
                                   of_.NameOf(first)));
    }
    has_run_backward[id] = true;
  }
  return Done{};
}

// Checks that steps read only gradients in memory, and that each gradient is freed once.
Result<Done> Simulator::CheckGradientFrees(const Schedule& schedule) {
  const TensorGraph& graph = of_.forward();
  ByteCounter counter(graph);
  GradientReplay<ByteCounter> replay(graph, &counter, schedule.frees);
  IdVector<TensorId, bool> was_freed(graph.tensors().size());
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const auto check = [&](NodeId of) -> Result<Done> {
      for (const TensorId output : graph.node(of).outputs) {
        if (!was_freed[output]) continue;
        return StepError(schedule, k,
                         fmt::format("reads the gradient of \"{}\", which is not in memory",
                                     of_.NameOf(output)));
      }
      return Done{};
    };
    if (step.kind == StepKind::kLoss) replay.Loss();
    if (step.kind == StepKind::kFreeGradient) {
      if (graph.is_input(step.tensor()) || replay.BufferOf(step.tensor()) < 0) {
        return StepError(schedule, k, "frees a gradient that is not in memory");
      }
      replay.Free(step.tensor());
      was_freed[step.tensor()] = true;
    }
    if (step.kind != StepKind::kBackward) continue;
    CKPLAN_RETURN_IF_ERROR(check(step.node()));
    for (const TensorId output : graph.node(step.node()).outputs) {
      if (!graph.tensor(output).requires_grad) continue;
      for (const NodeId reader : graph.tensor(output).consumers) {
        CKPLAN_RETURN_IF_ERROR(check(reader));
      }
    }
    replay.Backward(step.node());
  }
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.is_input(id) || replay.BufferOf(id) < 0) continue;
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format("schedule: the gradient of \"{}\" is never freed", of_.NameOf(id)));
  }
  return Done{};
}

void Simulator::UpdateProfile(FreePolicy frees) {
  const std::vector<NodeId>& order = backward_order_;
  const bool is_held = FreesGradients(of_.forward(), frees);
  const bool is_same = profile_.order == order && profile_.is_held == is_held;
  if (is_same && !profile_.during.empty()) return;
  // Stays empty until the profile is complete, since a stop may interrupt the work.
  profile_.order.clear();
  profile_.during.assign(table_.reads.size(), Bytes(0));
  profile_.after.assign(table_.reads.size(), Bytes(0));
  const TensorGraph& graph = of_.forward();
  ByteCounter counter(graph);
  GradientReplay<ByteCounter> replay(graph, &counter, frees);
  const auto note = [&](const Step& step) {
    const auto kind = static_cast<size_t>(KindOf(graph, step));
    profile_.during[kind] = counter.highest();
    profile_.after[kind] = counter.live();
  };
  replay.Loss();
  note(Step::Loss());
  for (const NodeId id : order) {
    PollStop();
    counter.ResetHighest();
    replay.Backward(id);
    note(Step::Backward(id));
  }
  profile_.order = order;
  profile_.is_held = is_held;
}

Bytes KeepAllPeak(const TrainingStep& step) {
  return Simulator(step).Run(step.KeepAll()).value().peak;
}

}  // namespace ckplan
