#include "lib/emit/dot.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/emit/dot_text.h"

namespace ckplan {
namespace {

constexpr std::string_view kLegend = "box: keep   ellipse: recompute   hexagon: transient";

class DotWriter {
 public:
  DotWriter(const TensorGraph& graph, const Plan* plan)
      : graph_(graph), plan_(plan), picture_(graph.name()) {}

  std::string Write() && {
    WriteInputs();
    if (plan_ == nullptr) {
      for (const NodeId id : graph_.nodes().ids()) WriteNode(1, id);
    } else {
      picture_.Title(plan_->figures, plan_->request.algorithm, kLegend);
      WriteSegments();
    }
    WriteEdges();
    return std::move(picture_).Finish();
  }

 private:
  // Inputs without readers would be unconnected, so they are left out.
  void WriteInputs() {
    for (const TensorId id : graph_.tensors().ids()) {
      const Tensor& tensor = graph_.tensor(id);
      if (!graph_.is_input(id) || tensor.consumers.empty()) continue;
      picture_.Input(fmt::format("t{}", id.index()), tensor.name);
    }
  }

  void WriteSegments() {
    std::map<int32_t, std::vector<NodeId>> segments;
    for (const NodeId id : graph_.nodes().ids())
      segments[plan_->decisions[id].segment].push_back(id);
    for (const auto& [segment, nodes] : segments) {
      picture_.BeginCluster(std::to_string(segment), fmt::format("segment {}", segment));
      for (const NodeId id : nodes) WriteNode(2, id);
      picture_.EndCluster();
    }
  }

  void WriteNode(size_t depth, NodeId id) {
    const Node& node = graph_.node(id);
    picture_.Node(depth, id.index(), node.name, node.op,
                  plan_ == nullptr ? nullptr : &plan_->decisions[id]);
  }

  // Writes one edge per tensor and reader. Ids are positions, so the order of edges is fixed.
  void WriteEdges() {
    for (const TensorId id : graph_.tensors().ids()) {
      const Tensor& tensor = graph_.tensor(id);
      const std::string from = graph_.is_input(id) ? fmt::format("t{}", id.index())
                                                   : fmt::format("n{}", tensor.producer.index());
      for (const NodeId consumer : tensor.consumers) {
        picture_.Edge(from, consumer.index(), tensor.bytes, tensor.name);
      }
    }
  }

  const TensorGraph& graph_;
  const Plan* plan_;
  DotPicture picture_;
};

}  // namespace

std::string WriteDot(const TensorGraph& graph, const Plan* plan) {
  CKPLAN_CHECK(plan == nullptr || plan->decisions.size() == graph.nodes().size(),
               "a plan decides about every node of its graph");
  return DotWriter(graph, plan).Write();
}

}  // namespace ckplan
