#include "lib/emit/division_tree_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "lib/algorithms/feng/division_tree.h"
#include "lib/algorithms/feng/two_terminal.h"
#include "lib/base/human_bytes.h"
#include "lib/emit/dot_text.h"

namespace ckplan {
namespace {

// More names than this would make a picture unreadable.
constexpr size_t kMaxNames = 4;

std::string_view ShapeOf(CloseSetKind kind) {
  switch (kind) {
    case CloseSetKind::kBranched:
      return "ellipse";
    case CloseSetKind::kNonBranched:
      return "hexagon";
    case CloseSetKind::kEdge:
    case CloseSetKind::kSplittable:
    case CloseSetKind::kUndivided:
      return "box";
  }
  return "box";
}

std::string_view NameOf(CloseSetKind kind) {
  switch (kind) {
    case CloseSetKind::kEdge:
      return "edge";
    case CloseSetKind::kSplittable:
      return "splittable";
    case CloseSetKind::kBranched:
      return "branched";
    case CloseSetKind::kNonBranched:
      return "non-branched";
    case CloseSetKind::kUndivided:
      return "undivided";
  }
  return "";
}

class DivisionTreeWriter {
 public:
  DivisionTreeWriter(const TensorGraph& graph, const TwoTerminalGraph& ends,
                     const DivisionTree& tree)
      : graph_(graph), ends_(ends), tree_(tree) {}

  std::string Write() && {
    Line("digraph \"{}\" {{", EscapeForDot(graph_.name()));
    Line("  rankdir=LR;");
    Line("  node [fontname=\"Helvetica\", fontsize=11];");
    for (size_t i = 0; i < tree_.close_sets.size(); ++i) WriteCloseSet(i);
    Line("}}");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  bool IsDrawn(size_t index) const {
    return index == 0 || tree_.close_sets[index].kind != CloseSetKind::kEdge;
  }

  std::string VertexName(VertexId v) const {
    if (ends_.is_virtual(v)) return v == ends_.source() ? "source" : "target";
    return EscapeForDot(graph_.node(ends_.vertices[v].nodes.back()).name);
  }

  void WriteCloseSet(size_t index) {
    if (!IsDrawn(index)) return;
    const CloseSet& set = tree_.close_sets[index];
    std::string label = fmt::format("{} → {}\\n{}, {}", VertexName(set.begin), VertexName(set.end),
                                    NameOf(set.kind), HumanBytes(set.memory));
    if (!set.inner.empty()) label += "\\nat " + NamesOf(set.inner);
    const auto edges = std::count_if(set.children.begin(), set.children.end(), [&](int32_t child) {
      return !IsDrawn(static_cast<size_t>(child));
    });
    if (edges > 0) label += fmt::format("\\n{} {}", edges, edges == 1 ? "edge" : "edges");
    Line("  c{} [label=\"{}\", shape={}];", index, label, ShapeOf(set.kind));
    for (const int32_t child : set.children) {
      if (IsDrawn(static_cast<size_t>(child))) Line("  c{} -> c{};", index, child);
    }
  }

  std::string NamesOf(const std::vector<VertexId>& vertices) const {
    std::string names;
    for (size_t i = 0; i < std::min(vertices.size(), kMaxNames); ++i) {
      names += (i == 0 ? "" : ", ") + VertexName(vertices[i]);
    }
    if (vertices.size() > kMaxNames) names += fmt::format(", … {} in all", vertices.size());
    return names;
  }

  const TensorGraph& graph_;
  const TwoTerminalGraph& ends_;
  const DivisionTree& tree_;
  std::string text_;
};

}  // namespace

Result<std::string> WriteDivisionTreeDot(const TensorGraph& graph) {
  const TwoTerminalGraph ends = MakeTwoTerminal(graph, VertexGraph(graph));
  CKPLAN_ASSIGN_OR_RETURN(const DivisionTree tree, DivideGraph(ends, {}));
  return DivisionTreeWriter(graph, ends, tree).Write();
}

}  // namespace ckplan
