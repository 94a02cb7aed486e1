#include "lib/problem/schedule/gradient_graph.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/schedule/expand.h"

namespace ckplan {
namespace {

class Mirroring {
 public:
  explicit Mirroring(const JointGraph& graph)
      : graph_(graph), newest_(graph.values().size()), runs_(graph.ops().size()) {
    parts_.name = graph.name();
    parts_.optimized_tensors = graph.optimized_tensors();
    for (const ValueId id : graph.values().ids()) {
      if (graph.value(id).producer.is_none()) AddVersion(id, 0);
    }
  }

  Result<GradientGraph> Build(const std::vector<OpId>& runs) && {
    for (const OpId id : runs) AddRun(id);
    for (const ValueId id : graph_.results()) parts_.results.push_back(newest_[id]);
    CKPLAN_ASSIGN_OR_RETURN(JointGraph graph, JointGraph::Create(std::move(parts_)));
    return GradientGraph{std::move(graph), std::move(mirror_of_)};
  }

 private:
  static std::string MirrorName(const std::string& name, int32_t mirror) {
    if (mirror == 0) return name;
    return mirror == 1 ? fmt::format("{} mirror", name) : fmt::format("{} mirror {}", name, mirror);
  }

  // Adds the value of a run. Its base, if it is an alias, has its newest version already.
  void AddVersion(ValueId id, int32_t mirror) {
    const Value& of = graph_.value(id);
    Value value;
    value.file_id = static_cast<int64_t>(parts_.values.size());
    value.name = MirrorName(of.name, mirror);
    value.kind = of.kind;
    value.bytes = of.bytes;
    if (!of.alias_of.is_none()) value.alias_of = newest_[of.alias_of];
    if (mirror > 0) {
      // The memory of a constant counts once. An arriving gradient in the peak is a result only in
      // its last version.
      if (!IsCountedInPeak(of.kind)) value.bytes = Bytes(0);
      if (of.kind == ValueKind::kArrivingGradient) {
        parts_.values[newest_[id]].kind = ValueKind::kValue;
      }
    }
    newest_[id] = parts_.values.push_back(std::move(value));
  }

  void AddRun(OpId id) {
    PollStop();
    const Operation& of = graph_.op(id);
    const int32_t mirror = runs_[id]++;
    Operation op = of;
    op.file_id = static_cast<int64_t>(parts_.ops.size());
    op.name = MirrorName(of.name, mirror);
    for (ValueId& read : op.reads) read = newest_[read];
    for (InPlaceWrite& pair : op.in_place) pair.read = newest_[pair.read];
    for (const ValueId write : of.writes) AddVersion(write, mirror);
    for (ValueId& write : op.writes) write = newest_[write];
    for (InPlaceWrite& pair : op.in_place) pair.write = newest_[pair.write];
    parts_.ops.push_back(std::move(op));
    mirror_of_.push_back(mirror);
  }

  const JointGraph& graph_;
  JointGraphParts parts_;
  IdVector<ValueId, ValueId> newest_;  // The newest version of each value.
  IdVector<OpId, int32_t> runs_;       // How often each operation has run.
  IdVector<OpId, int32_t> mirror_of_;
};

Schedule WithoutFrees(const Schedule& schedule) {
  Schedule bare;
  for (const Step& step : schedule.steps) {
    if (!step.is_free()) bare.steps.push_back(step);
  }
  return bare;
}

}  // namespace

Result<GradientGraph> BuildGradientGraph(const TrainingStep& step, const Schedule& schedule) {
  if (HasTransfers(schedule)) {
    return MakeError(ErrorCode::kUnsupported,
                     "a gradient graph cannot show values that are moved to the host");
  }
  if (step.is_joint()) return Mirroring(step.joint()).Build(RunsOf(schedule));
  if (step.forward().backward() == BackwardForm::kByInput) {
    return MakeError(ErrorCode::kUnsupported,
                     "a gradient graph has backward steps by node; plan without --backward "
                     "by-input");
  }
  const Schedule bare = WithoutFrees(schedule);
  const Expansion expansion = IsMirrored(bare)
                                  ? ExpandTensorGraph(step.forward(), ForwardOrder(bare))
                                  : ExpandForAnyOrder(step.forward());
  return Mirroring(expansion.graph).Build(RunsOf(expansion, bare));
}

}  // namespace ckplan
