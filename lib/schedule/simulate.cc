#include "lib/schedule/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/stop.h"
#include "lib/schedule/gradients.h"
#include "lib/schedule/peak_meter.h"

namespace ckplan {
namespace {

// Sums live gradient bytes and remembers the highest sum since the last reset.
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

// Measures a schedule with its gradients, including the memory of other micro-batches.
class Simulator::Meter : public PeakMeter {
 public:
  Meter(const StepTable& table, const GradientProfile& profile, int32_t loss)
      : PeakMeter(table), profile_(profile), loss_(loss) {}

  void Work(int32_t kind) {
    Measure(kind, kind < loss_ ? gradients_ : Of(profile_.during, kind));
    if (kind >= loss_) gradients_ = Of(profile_.after, kind);
  }
  void EndStep(int32_t kind) {
    if (kind >= 0) last_kind_ = kind;
    if (last_kind_ == loss_) saved_ = live();  // Frees may follow the loss.
    PeakMeter::EndStep(kind);
  }

  // The memory in use after the loss, without gradients.
  Bytes saved() const { return saved_; }

 private:
  const GradientProfile& profile_;
  const int32_t loss_;
  int32_t last_kind_ = Replay::kNone;  // The last step that is not a free.
  Bytes gradients_;
  Bytes saved_;
};

Simulator::Simulator(const TensorGraph& graph)
    : graph_(graph), table_(TableOf(graph)), replay_(table_) {}

Result<Simulation> Simulator::Run(const Schedule& schedule) {
  CKPLAN_RETURN_IF_ERROR(CheckShape(schedule));
  const std::vector<int32_t> kinds = KindsOf(graph_, schedule);
  if (const auto fault = replay_.Read(kinds, schedule.frees)) return FaultOf(schedule, *fault);
  UpdateProfile();
  Meter meter(table_, profile_, KindOf(graph_, Step::Loss()));
  replay_.Report(&meter);
  const Bytes others = (graph_.micro_batches() - 1) * meter.saved();
  return Simulation{meter.peak() + others, meter.peak_step(), meter.cost() - graph_.forward_cost(),
                    others};
}

Error Simulator::FaultOf(const Schedule& schedule, const ReplayFault& fault) const {
  const std::string& tensor = graph_.tensor(TensorId(fault.value)).name;
  switch (fault.kind) {
    case ReplayFault::Kind::kAbsentRead:
      return StepError(schedule, fault.step,
                       fmt::format("reads tensor \"{}\", which is not in memory", tensor));
    case ReplayFault::Kind::kAbsentFree:
      return StepError(schedule, fault.step, "frees a tensor that is not in memory");
    case ReplayFault::Kind::kStillThere:
      return StepError(schedule, fault.step, "makes a tensor that is in memory already");
    case ReplayFault::Kind::kNeverFreed:
      break;
  }
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("schedule: tensor \"{}\" is never freed", tensor));
}

Error Simulator::StepError(const Schedule& schedule, size_t step, const std::string& fault) const {
  static constexpr const char* kVerbs[] = {"forward", "loss", "backward", "free", "run"};
  const Step& s = schedule.steps[step];
  std::string what = kVerbs[static_cast<size_t>(s.kind)];
  const auto index = static_cast<size_t>(s.index);
  if (s.kind == StepKind::kFree && index < graph_.tensors().size()) {
    what += fmt::format(" of \"{}\"", graph_.tensor(s.tensor()).name);
  } else if (s.kind != StepKind::kLoss && index < graph_.nodes().size()) {
    what += fmt::format(" of \"{}\"", graph_.node(s.node()).name);
  }
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("schedule: step {} ({}) {}", step, what, fault));
}

// Checks everything but memory: indices are valid, there is one loss and one backward of each node
// in an allowed order, and all nodes run.
Result<Done> Simulator::CheckShape(const Schedule& schedule) {
  const size_t node_count = graph_.nodes().size();
  runs_.assign(node_count, 0);
  order_.clear();
  backward_order_.clear();
  bool has_loss = false;
  bool is_mirrored = true;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const auto index = static_cast<size_t>(step.index);
    if (step.kind == StepKind::kLoss) {
      if (has_loss) return StepError(schedule, k, "is a second loss");
      has_loss = true;
      is_mirrored &= order_.size() == node_count;
    } else if (step.kind == StepKind::kFree) {
      if (schedule.frees != FreePolicy::kExplicit || index >= graph_.tensors().size()) {
        return StepError(schedule, k, "frees what this schedule may not free");
      }
    } else if (step.kind == StepKind::kRun) {
      return StepError(schedule, k, "is for joint graphs alone");
    } else if (index >= node_count) {
      return StepError(schedule, k, "runs a node that the graph does not have");
    } else if (step.kind == StepKind::kForward) {
      if (runs_[index]++ == 0) order_.push_back(step.node());
    } else {
      if (!has_loss) return StepError(schedule, k, "comes before the loss");
      backward_order_.push_back(step.node());
      const size_t count = backward_order_.size();
      is_mirrored &= count <= order_.size() && order_[order_.size() - count] == step.node();
    }
  }
  if (!has_loss) return MakeError(ErrorCode::kInvalidInput, "schedule: there is no loss");
  if (backward_order_.size() < node_count) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("schedule: {} nodes never run backward",
                                                           node_count - backward_order_.size()));
  }
  return is_mirrored ? Done{} : CheckFreeOrder(schedule);
}

// Applies the rules of backward_order.h to a schedule that is not mirrored and whose steps name
// nodes.
Result<Done> Simulator::CheckFreeOrder(const Schedule& schedule) {
  if (!precedence_) precedence_.emplace(graph_);
  IdVector<NodeId, bool> has_run(graph_.nodes().size());
  IdVector<NodeId, bool> has_run_backward(graph_.nodes().size());
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind == StepKind::kForward) has_run[step.node()] = true;
    if (step.kind != StepKind::kBackward) continue;
    const NodeId id = step.node();
    if (has_run_backward[id]) return StepError(schedule, k, "runs a second time");
    if (!has_run[id]) return StepError(schedule, k, "comes before its node has run forward");
    for (const NodeId first : precedence_->after[id]) {
      if (has_run_backward[first]) continue;
      return StepError(schedule, k,
                       fmt::format("comes before that of \"{}\", which adds to a gradient first",
                                   graph_.node(first).name));
    }
    has_run_backward[id] = true;
  }
  return Done{};
}

void Simulator::UpdateProfile() {
  const std::vector<NodeId>& order = backward_order_;
  if (profile_.order == order && !profile_.during.empty()) return;
  // Left empty until the profile is complete, because the work may be stopped.
  profile_.order.clear();
  profile_.during.assign(table_.reads.size(), Bytes(0));
  profile_.after.assign(table_.reads.size(), Bytes(0));
  ByteCounter counter(graph_);
  GradientReplay<ByteCounter> replay(graph_, &counter);
  const auto note = [&](const Step& step) {
    const auto kind = static_cast<size_t>(KindOf(graph_, step));
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
}

Bytes KeepAllPeak(const TensorGraph& graph) {
  return Simulator(graph).Run(KeepAllInOwnOrder(graph)).value().peak;
}

}  // namespace ckplan
