#include "lib/emit/joint_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/emit/dot_text.h"

namespace ckplan {
namespace {

constexpr std::string_view kJointLegend = "box: runs once   ellipse: runs again   hexagon: dropped";

class JointDotWriter {
 public:
  JointDotWriter(const JointGraph& graph, const Plan* plan)
      : graph_(graph), plan_(plan), picture_(graph.name()) {}

  std::string Write() && {
    if (plan_ != nullptr) picture_.Title(plan_->figures, plan_->request.algorithm, kJointLegend);
    WriteInputs();
    WritePhase(Phase::kForward);
    WritePhase(Phase::kBackward);
    WriteEdges();
    return std::move(picture_).Finish();
  }

 private:
  // Values without readers are left out.
  void WriteInputs() {
    for (const ValueId id : graph_.values().ids()) {
      const Value& value = graph_.value(id);
      if (!value.maker.is_none() || value.readers.empty()) continue;
      picture_.Input(fmt::format("v{}", id.index()), value.name);
    }
  }

  void WritePhase(Phase phase) {
    const auto is_here = [&](const Operation& op) { return op.phase == phase; };
    if (std::none_of(graph_.ops().begin(), graph_.ops().end(), is_here)) return;
    picture_.BeginCluster(NameOf(phase), NameOf(phase));
    for (const OpId id : graph_.ops().ids()) {
      const Operation& op = graph_.op(id);
      if (!is_here(op)) continue;
      picture_.Node(2, id.index(), op.name, op.op,
                    plan_ == nullptr ? nullptr : &plan_->decisions[id]);
    }
    picture_.EndCluster();
  }

  // Writes one edge per value and reader. Ids are positions, so the order of edges is fixed.
  void WriteEdges() {
    for (const ValueId id : graph_.values().ids()) {
      const Value& value = graph_.value(id);
      const std::string from = value.maker.is_none() ? fmt::format("v{}", id.index())
                                                     : fmt::format("n{}", value.maker.index());
      for (const OpId reader : value.readers) {
        picture_.Edge(from, reader.index(), value.bytes, value.name);
      }
    }
  }

  const JointGraph& graph_;
  const Plan* plan_;
  DotPicture picture_;
};

}  // namespace

std::string WriteJointDot(const JointGraph& graph, const Plan* plan) {
  CKPLAN_CHECK(plan == nullptr || plan->decisions.size() == graph.ops().size(),
               "a plan decides about every operation of its graph");
  return JointDotWriter(graph, plan).Write();
}

}  // namespace ckplan
