#include "lib/files/emit/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/text.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

namespace {

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

}  // namespace

DotPicture::DotPicture(std::string_view name) {
  Line(0, "digraph \"{}\" {{", EscapeForDot(name));
  Line(1, "rankdir=TB;");
  Line(1, "node [fontname=\"Helvetica\", fontsize=11];");
  Line(1, "edge [fontname=\"Helvetica\", fontsize=9];");
}

void DotPicture::Title(const PlanFigures& figures, std::string_view algorithm,
                       std::string_view legend) {
  Line(1, "labelloc=t;");
  Line(1, "label=\"{}: peak {}, keep-all {}\\n{}\";", EscapeForDot(algorithm),
       HumanBytes(figures.peak), HumanBytes(figures.baseline_peak), legend);
}

void DotPicture::BeginCluster(std::string_view id, std::string_view label) {
  Line(1, "subgraph cluster_{} {{", id);
  Line(2, "label=\"{}\";", label);
  Line(2, "color=\"#999999\";");
}

void DotPicture::EndCluster() { Line(1, "}}"); }

void DotPicture::Input(std::string_view id, std::string_view name) {
  Line(1, "{} [label=\"{}\", shape=plaintext];", id, EscapeForDot(name));
}

void DotPicture::Node(size_t depth, int32_t index, std::string_view name, std::string_view op,
                      const NodeDecision* decision) {
  std::string label = EscapeForDot(name);
  if (!op.empty() && op != name) label += (label.empty() ? "" : "\\n") + EscapeForDot(op);
  std::string_view style = kPlainStyle;
  if (decision != nullptr) {
    style = StyleOf(decision->action);
    if (decision->recompute_count > 0) {
      label += fmt::format("\\nruns {}x", decision->recompute_count + 1);
    }
  }
  Line(depth, "n{} [label=\"{}\", {}];", index, label, style);
}

void DotPicture::Edge(std::string_view from, int32_t to, Bytes bytes, std::string_view name,
                      bool is_moved) {
  Line(1, "{} -> n{} [label=\"{}\", tooltip=\"{}\"{}];", from, to, HumanBytes(bytes),
       EscapeForDot(name), is_moved ? ", style=dashed" : "");
}

std::string DotPicture::Finish() && {
  Line(0, "}}");
  return std::move(text_);
}

namespace {

class DotWriter {
 public:
  DotWriter(const TrainingStep& step, const Plan* plan)
      : step_(step), plan_(plan), picture_(step.name()) {}
  explicit DotWriter(const GradientGraph& of)
      : step_(of.graph), mirror_of_(&of.mirror_of), picture_(of.graph.name()) {}

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
      WriteCluster("mirrored", "mirrored", OfPhase(Phase::kForward, /*are_mirrors=*/true));
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
  // Skips inputs without readers, which would be unconnected.
  void WriteInputs() {
    for (const TensorId id : step_.tensor_ids()) {
      if (!step_.ProducerOf(id).is_none() || step_.ReadersOf(id).empty()) continue;
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
    WriteCluster(NameOf(phase), NameOf(phase), OfPhase(phase, /*are_mirrors=*/false));
  }

  std::vector<NodeId> OfPhase(Phase phase, bool are_mirrors) const {
    std::vector<NodeId> nodes;
    for (const NodeId id : step_.node_ids()) {
      const bool is_mirror = phase == Phase::kForward && IsMirror(id);
      if (step_.joint().op(id).phase == phase && is_mirror == are_mirrors) nodes.push_back(id);
    }
    return nodes;
  }

  bool IsMirror(NodeId id) const { return mirror_of_ != nullptr && (*mirror_of_)[id] > 0; }

  void WriteCluster(std::string_view id, std::string_view label, const std::vector<NodeId>& nodes) {
    if (nodes.empty()) return;
    picture_.BeginCluster(id, label);
    for (const NodeId node : nodes) WriteNode(2, node);
    picture_.EndCluster();
  }

  void WriteNode(size_t depth, NodeId id) {
    static const NodeDecision kMirror = {.action = NodeAction::kRecompute};
    picture_.Node(depth, id.index(), step_.RawNameOf(id), step_.OpOf(id),
                  IsMirror(id)       ? &kMirror
                  : plan_ == nullptr ? nullptr
                                     : &plan_->decisions[id]);
  }

  // Writes one edge per tensor and reader.
  void WriteEdges() {
    IdVector<TensorId, bool> is_moved(step_.tensor_count());
    if (plan_ != nullptr) {
      for (const TensorId moved : MovedValues(plan_->schedule)) is_moved[moved] = true;
    }
    for (const TensorId id : step_.tensor_ids()) {
      const NodeId producer = step_.ProducerOf(id);
      const std::string from =
          producer.is_none() ? InputId(id) : fmt::format("n{}", producer.index());
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
  const Plan* plan_ = nullptr;
  const IdVector<OpId, int32_t>* mirror_of_ = nullptr;  // Null without mirrors.
  DotPicture picture_;
};

}  // namespace

std::string WriteDot(const TrainingStep& step, const Plan* plan) {
  CKPLAN_CHECK(plan == nullptr || plan->decisions.size() == step.node_count(),
               "a plan has a decision for every node of its graph");
  return DotWriter(step, plan).Write();
}

std::string WriteGradientGraphDot(const GradientGraph& of) { return DotWriter(of).Write(); }

namespace {

// A box with kept and recomputed nodes shades from one colour to the other.
constexpr std::string_view kMixedStyle =
    "shape=box, style=\"filled,rounded\", fillcolor=\"#56B4E9:#E69F00\"";

struct Boxes {
  IdVector<NodeId, size_t> box_of;
  std::vector<std::string> names;
};

// Numbers the boxes in the order of their first nodes.
Boxes GroupByName(const std::vector<std::string>& name_of_node) {
  Boxes boxes;
  std::map<std::string, size_t> by_name;
  for (const std::string& name : name_of_node) {
    const auto [entry, is_new] = by_name.try_emplace(name, boxes.names.size());
    if (is_new) boxes.names.push_back(name);
    boxes.box_of.push_back(entry->second);
  }
  return boxes;
}

// Returns nothing if even the outermost level has too many modules, or if all nodes are in one box.
std::optional<Boxes> GroupByModules(const TrainingStep& graph) {
  std::vector<std::vector<std::string>> chains;
  size_t deepest = 0;
  for (size_t i = 0; i < graph.node_count(); ++i) {
    chains.push_back(graph.ModulesOf(NodeId(i)));
    deepest = std::max(deepest, chains.back().size());
  }
  std::optional<Boxes> found;
  for (size_t depth = 1; depth <= deepest; ++depth) {
    std::vector<std::string> names;
    for (const std::vector<std::string>& chain : chains) {
      names.push_back(chain.empty() ? "(no module)" : chain[std::min(depth, chain.size()) - 1]);
    }
    Boxes boxes = GroupByName(names);
    if (boxes.names.size() > kMaxDotBoxes) break;
    if (boxes.names.size() > 1) found = std::move(boxes);
  }
  return found;
}

std::optional<Boxes> GroupBySegments(const Plan* plan) {
  if (plan == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const NodeDecision& decision : plan->decisions) {
    names.push_back(fmt::format("segment {}", decision.segment));
  }
  Boxes boxes = GroupByName(names);
  if (boxes.names.size() < 2 || boxes.names.size() > kMaxDotBoxes) return std::nullopt;
  return boxes;
}

// Groups consecutive nodes and names the boxes by their first and last nodes: "conv1 ... relu7".
Boxes GroupByOrder(const TrainingStep& graph) {
  const size_t count = graph.node_count();
  const size_t length = (count + kMaxDotBoxes - 1) / kMaxDotBoxes;
  Boxes boxes;
  for (size_t begin = 0; begin < count; begin += length) {
    const size_t last = std::min(begin + length, count) - 1;
    for (size_t i = begin; i <= last; ++i) boxes.box_of.push_back(boxes.names.size());
    boxes.names.push_back(
        fmt::format("{} ... {}", graph.NameOf(NodeId(begin)), graph.NameOf(NodeId(last))));
  }
  return boxes;
}

class FoldedDot {
 public:
  FoldedDot(const TrainingStep& graph, const Plan* plan) : graph_(graph), plan_(plan) {
    std::optional<Boxes> boxes = GroupByModules(graph);
    if (!boxes) boxes = GroupBySegments(plan);
    boxes_ = boxes ? *std::move(boxes) : GroupByOrder(graph);
  }

  std::string Write(const std::string& name) && {
    Line("digraph \"{}\" {{", EscapeForDot(name));
    Line("  rankdir=TB;");
    Line("  node [fontname=\"Helvetica\", fontsize=11];");
    Line("  edge [fontname=\"Helvetica\", fontsize=9];");
    if (plan_ != nullptr) WriteTitle();
    for (size_t box = 0; box < boxes_.names.size(); ++box) WriteBox(box);
    WriteEdges();
    Line("}}");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void WriteTitle() {
    Line("  labelloc=t;");
    Line("  label=\"{}: peak {}, keep-all {}\\nblue: keep   orange: recompute\";",
         EscapeForDot(plan_->request.algorithm), HumanBytes(plan_->figures.peak),
         HumanBytes(plan_->figures.baseline_peak));
  }

  void WriteBox(size_t box) {
    int64_t nodes = 0, recomputed = 0;
    Bytes kept;
    for (size_t i = 0; i < graph_.node_count(); ++i) {
      const NodeId node(i);
      if (boxes_.box_of[node] != box) continue;
      ++nodes;
      if (plan_ == nullptr) continue;
      const NodeAction action = plan_->decisions[node].action;
      if (action == NodeAction::kRecompute) ++recomputed;
      if (action == NodeAction::kKeep) kept += OutputBytes(node);
    }
    std::string label = EscapeForDot(boxes_.names[box]);
    label += fmt::format("\\n{} node{}", nodes, nodes == 1 ? "" : "s");
    if (plan_ != nullptr)
      label += fmt::format(", {} run again\\nkeeps {}", recomputed, HumanBytes(kept));
    const std::string_view style = plan_ == nullptr      ? kPlainStyle
                                   : recomputed == 0     ? kKeepStyle
                                   : recomputed == nodes ? kRecomputeStyle
                                                         : kMixedStyle;
    Line("  m{} [label=\"{}\", {}];", box, label, style);
  }

  Bytes OutputBytes(NodeId node) const {
    Bytes sum;
    for (const TensorId output : graph_.OutputsOf(node)) {
      if (graph_.CountsInPeak(output)) sum += graph_.BytesOf(output);
    }
    return sum;
  }

  // Counts a tensor once per edge, even if several nodes of the box read it.
  void WriteEdges() {
    std::map<std::pair<size_t, size_t>, std::set<TensorId>> crossing;
    for (size_t i = 0; i < graph_.node_count(); ++i) {
      const NodeId reader(i);
      for (const TensorId read : graph_.ReadsOf(graph_.RunOf(reader))) {
        const NodeId producer = graph_.ProducerOf(read);
        if (producer.is_none() || boxes_.box_of[producer] == boxes_.box_of[reader]) continue;
        crossing[{boxes_.box_of[producer], boxes_.box_of[reader]}].insert(graph_.StorageOf(read));
      }
    }
    for (const auto& [edge, tensors] : crossing) {
      Bytes sum;
      for (const TensorId tensor : tensors) sum += graph_.BytesOf(tensor);
      Line("  m{} -> m{} [label=\"{}\"];", edge.first, edge.second, HumanBytes(sum));
    }
  }

  const TrainingStep graph_;
  const Plan* plan_;
  Boxes boxes_;
  std::string text_;
};

}  // namespace

std::string WriteFoldedDot(const TrainingStep& graph, const Plan* plan) {
  return FoldedDot(graph, plan).Write(graph.name());
}

}  // namespace ckplan
