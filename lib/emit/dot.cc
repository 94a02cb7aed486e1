#include "lib/emit/dot.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/human_bytes.h"
#include "lib/emit/dot_text.h"

namespace ckplan {
namespace {

constexpr std::string_view kPlainStyle = "shape=box";
constexpr std::string_view kKeepStyle = "shape=box, style=filled, fillcolor=\"#56B4E9\"";
constexpr std::string_view kRecomputeStyle = "shape=ellipse, style=filled, fillcolor=\"#E69F00\"";
constexpr std::string_view kTransientStyle = "shape=hexagon, style=dashed";

std::string_view StyleOf(NodeAction action) {
  switch (action) {
    case NodeAction::kKeep:
      return kKeepStyle;
    case NodeAction::kRecompute:
      return kRecomputeStyle;
    case NodeAction::kTransient:
    case NodeAction::kDrop:
      return kTransientStyle;
  }
  CKPLAN_CHECK(false, "every action has a style");
}

class DotWriter {
 public:
  DotWriter(const TensorGraph& graph, const Plan* plan) : graph_(graph), plan_(plan) {}

  std::string Write() && {
    Line(0, "digraph \"{}\" {{", EscapeForDot(graph_.name()));
    Line(1, "rankdir=TB;");
    Line(1, "node [fontname=\"Helvetica\", fontsize=11];");
    Line(1, "edge [fontname=\"Helvetica\", fontsize=9];");
    WriteInputs();
    if (plan_ == nullptr) {
      for (const NodeId id : graph_.nodes().ids()) WriteNode(1, id);
    } else {
      WriteTitle();
      WriteSegments();
    }
    WriteEdges();
    Line(0, "}}");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(size_t depth, fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * depth, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void WriteTitle() {
    const PlanFigures& figures = plan_->figures;
    Line(1, "labelloc=t;");
    Line(
        1,
        "label=\"{}: peak {}, keep-all {}\\nbox: keep   ellipse: recompute   hexagon: transient\";",
        EscapeForDot(plan_->request.algorithm), HumanBytes(figures.peak),
        HumanBytes(figures.baseline_peak));
  }

  // Inputs that nobody reads would float about: they are left out.
  void WriteInputs() {
    for (const TensorId id : graph_.tensors().ids()) {
      const Tensor& tensor = graph_.tensor(id);
      if (!graph_.is_input(id) || tensor.consumers.empty()) continue;
      Line(1, "t{} [label=\"{}\", shape=plaintext];", id.index(), EscapeForDot(tensor.name));
    }
  }

  void WriteSegments() {
    std::map<int32_t, std::vector<NodeId>> segments;
    for (const NodeId id : graph_.nodes().ids())
      segments[plan_->decisions[id].segment].push_back(id);
    for (const auto& [segment, nodes] : segments) {
      Line(1, "subgraph cluster_{} {{", segment);
      Line(2, "label=\"segment {}\";", segment);
      Line(2, "color=\"#999999\";");
      for (const NodeId id : nodes) WriteNode(2, id);
      Line(1, "}}");
    }
  }

  void WriteNode(size_t depth, NodeId id) {
    const Node& node = graph_.node(id);
    std::string label = EscapeForDot(node.name);
    if (!node.op.empty() && node.op != node.name) {
      label += (label.empty() ? "" : "\\n") + EscapeForDot(node.op);
    }
    std::string_view style = kPlainStyle;
    if (plan_ != nullptr) {
      const NodeDecision& decision = plan_->decisions[id];
      style = StyleOf(decision.action);
      if (decision.recompute_count > 0)
        label += fmt::format("\\nruns {}x", decision.recompute_count + 1);
    }
    Line(depth, "n{} [label=\"{}\", {}];", id.index(), label, style);
  }

  // One edge per tensor and reader. Ids are positions, so edges come in one order always.
  void WriteEdges() {
    for (const TensorId id : graph_.tensors().ids()) {
      const Tensor& tensor = graph_.tensor(id);
      const std::string from = graph_.is_input(id) ? fmt::format("t{}", id.index())
                                                   : fmt::format("n{}", tensor.producer.index());
      for (const NodeId consumer : tensor.consumers) {
        Line(1, "{} -> n{} [label=\"{}\", tooltip=\"{}\"];", from, consumer.index(),
             HumanBytes(tensor.bytes), EscapeForDot(tensor.name));
      }
    }
  }

  const TensorGraph& graph_;
  const Plan* plan_;
  std::string text_;
};

}  // namespace

std::string WriteDot(const TensorGraph& graph, const Plan* plan) {
  CKPLAN_CHECK(plan == nullptr || plan->decisions.size() == graph.nodes().size(),
               "a plan decides about every node of its graph");
  return DotWriter(graph, plan).Write();
}

}  // namespace ckplan
