#include "lib/files/emit/dot.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/files/emit/dot_text.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

class DotWriter {
 public:
  DotWriter(const TrainingStep& step, const Plan* plan)
      : step_(step), plan_(plan), picture_(step.name()) {}

  std::string Write() && {
    WriteInputs();
    if (plan_ != nullptr) {
      std::string legend = step_.is_joint()
                               ? "box: runs once   ellipse: runs again   hexagon: dropped"
                               : "box: keep   ellipse: recompute   hexagon: transient";
      if (HasTransfers(plan_->schedule)) legend += "   dashed: moved to the host";
      picture_.Title(plan_->figures, plan_->request.algorithm, legend);
    }
    if (step_.is_joint()) {
      WritePhase(Phase::kForward);
      WritePhase(Phase::kBackward);
    } else if (plan_ != nullptr) {
      WriteSegments();
    } else {
      for (const NodeId id : step_.node_ids()) WriteNode(1, id);
    }
    WriteEdges();
    return std::move(picture_).Finish();
  }

 private:
  // Inputs without readers would be unconnected, so they are left out.
  void WriteInputs() {
    for (const TensorId id : step_.tensor_ids()) {
      if (!step_.MakerOf(id).is_none() || step_.ReadersOf(id).empty()) continue;
      picture_.Input(InputId(id), step_.RawNameOf(id));
    }
  }

  void WriteSegments() {
    std::map<int32_t, std::vector<NodeId>> segments;
    for (const NodeId id : step_.node_ids()) segments[plan_->decisions[id].segment].push_back(id);
    for (const auto& [segment, nodes] : segments) {
      WriteCluster(std::to_string(segment), fmt::format("segment {}", segment), nodes);
    }
  }

  void WritePhase(Phase phase) {
    std::vector<NodeId> nodes;
    for (const NodeId id : step_.node_ids()) {
      if (step_.joint().op(id).phase == phase) nodes.push_back(id);
    }
    if (!nodes.empty()) WriteCluster(NameOf(phase), NameOf(phase), nodes);
  }

  void WriteCluster(std::string_view id, std::string_view label, const std::vector<NodeId>& nodes) {
    picture_.BeginCluster(id, label);
    for (const NodeId node : nodes) WriteNode(2, node);
    picture_.EndCluster();
  }

  void WriteNode(size_t depth, NodeId id) {
    picture_.Node(depth, id.index(), step_.RawNameOf(id), step_.OpOf(id),
                  plan_ == nullptr ? nullptr : &plan_->decisions[id]);
  }

  // Writes one edge per tensor and reader. Ids are positions, so the order of edges is fixed.
  void WriteEdges() {
    IdVector<TensorId, bool> is_moved(step_.tensor_count());
    if (plan_ != nullptr) {
      for (const TensorId moved : MovedValues(plan_->schedule)) is_moved[moved] = true;
    }
    for (const TensorId id : step_.tensor_ids()) {
      const NodeId maker = step_.MakerOf(id);
      const std::string from = maker.is_none() ? InputId(id) : fmt::format("n{}", maker.index());
      for (const NodeId reader : step_.ReadersOf(id)) {
        picture_.Edge(from, reader.index(), step_.BytesOf(id), step_.RawNameOf(id),
                      is_moved[step_.StorageOf(id)]);
      }
    }
  }

  std::string InputId(TensorId id) const {
    return fmt::format("{}{}", step_.tensor_word().front(), id.index());
  }

  const TrainingStep step_;
  const Plan* plan_;
  DotPicture picture_;
};

}  // namespace

std::string WriteDot(const TrainingStep& step, const Plan* plan) {
  CKPLAN_CHECK(plan == nullptr || plan->decisions.size() == step.node_count(),
               "a plan decides about every node of its graph");
  return DotWriter(step, plan).Write();
}

}  // namespace ckplan
