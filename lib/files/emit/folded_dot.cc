#include "lib/files/emit/folded_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/human_bytes.h"
#include "lib/base/quoted_text.h"
#include "lib/files/emit/dot_text.h"

namespace ckplan {
namespace {

// Colours and shapes are as in dot.cc; a box with both kinds shades from one colour to the other.
constexpr std::string_view kMixedStyle =
    "shape=box, style=\"filled,rounded\", fillcolor=\"#56B4E9:#E69F00\"";

// The box of each node, and the names of the boxes.
struct Boxes {
  IdVector<NodeId, size_t> box_of;
  std::vector<std::string> names;
};

// Numbers the boxes in the order of their first nodes.
Boxes BoxesOf(const std::vector<std::string>& name_of_node) {
  Boxes boxes;
  std::map<std::string, size_t> by_name;
  for (const std::string& name : name_of_node) {
    const auto [entry, is_new] = by_name.try_emplace(name, boxes.names.size());
    if (is_new) boxes.names.push_back(name);
    boxes.box_of.push_back(entry->second);
  }
  return boxes;
}

// Returns nothing if there are too many modules at the outermost level, or all nodes are in one.
std::optional<Boxes> ByModules(const TrainingStep& graph) {
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
    Boxes boxes = BoxesOf(names);
    if (boxes.names.size() > kMaxDotBoxes) break;
    if (boxes.names.size() > 1) found = std::move(boxes);
  }
  return found;
}

std::optional<Boxes> BySegments(const Plan* plan) {
  if (plan == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const NodeDecision& decision : plan->decisions) {
    names.push_back(fmt::format("segment {}", decision.segment));
  }
  Boxes boxes = BoxesOf(names);
  if (boxes.names.size() < 2 || boxes.names.size() > kMaxDotBoxes) return std::nullopt;
  return boxes;
}

// Names boxes by their first and last nodes: "conv1 ... relu7".
Boxes ByOrder(const TrainingStep& graph) {
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
    std::optional<Boxes> boxes = ByModules(graph);
    if (!boxes) boxes = BySegments(plan);
    boxes_ = boxes ? *std::move(boxes) : ByOrder(graph);
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
    int64_t nodes = 0, again = 0;
    Bytes kept;
    for (size_t i = 0; i < graph_.node_count(); ++i) {
      const NodeId node(i);
      if (boxes_.box_of[node] != box) continue;
      ++nodes;
      if (plan_ == nullptr) continue;
      const NodeAction action = plan_->decisions[node].action;
      if (action == NodeAction::kRecompute) ++again;
      if (action == NodeAction::kKeep) kept += MadeBy(node);
    }
    std::string label = EscapeForDot(boxes_.names[box]);
    label += fmt::format("\\n{} node{}", nodes, nodes == 1 ? "" : "s");
    if (plan_ != nullptr)
      label += fmt::format(", {} run again\\nkeeps {}", again, HumanBytes(kept));
    const std::string_view style = plan_ == nullptr ? kPlainStyle
                                   : again == 0     ? kKeepStyle
                                   : again == nodes ? kRecomputeStyle
                                                    : kMixedStyle;
    Line("  m{} [label=\"{}\", {}];", box, label, style);
  }

  Bytes MadeBy(NodeId node) const {
    Bytes sum;
    for (const TensorId output : graph_.OutputsOf(node)) {
      if (graph_.CountsInPeak(output)) sum += graph_.BytesOf(output);
    }
    return sum;
  }

  // Counts a tensor once if several nodes of a box read it.
  void WriteEdges() {
    std::map<std::pair<size_t, size_t>, std::set<TensorId>> crossing;
    for (size_t i = 0; i < graph_.node_count(); ++i) {
      const NodeId reader(i);
      for (const TensorId read : graph_.ReadsOf(graph_.RunOf(reader))) {
        const NodeId maker = graph_.MakerOf(read);
        if (maker.is_none() || boxes_.box_of[maker] == boxes_.box_of[reader]) continue;
        crossing[{boxes_.box_of[maker], boxes_.box_of[reader]}].insert(graph_.StorageOf(read));
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
