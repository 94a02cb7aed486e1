#include "lib/planning/algorithms/feng/division_tree_dot.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/algorithms/feng/division_tree.h"
#include "lib/planning/algorithms/feng/two_terminal.h"

namespace ckplan {
namespace {

// More names would be unreadable.
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

  // An edge holds no tensor, so draw it only if it is the whole graph.
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
    Line("  c{} [label=\"{} → {}\\n{}, {}\", shape={}];", index, VertexName(set.begin),
         VertexName(set.end), NameOf(set.kind), HumanBytes(set.memory), ShapeOf(set.kind));
    // List each child after the tensor that it begins at.
    std::vector<VertexId> tensors = set.inner;
    if (index == 0) tensors.insert(tensors.begin(), ends_.source());
    if (index == 0) tensors.push_back(ends_.target());
    size_t next = 0;
    for (const int32_t child : set.children) {
      if (!IsDrawn(static_cast<size_t>(child))) continue;
      const VertexId begin = tree_.close_sets[static_cast<size_t>(child)].begin;
      for (; next < tensors.size() && tensors[next] <= begin; ++next) {
        WriteTensor(index, tensors[next]);
      }
      Line("  c{} -> c{};", index, child);
    }
    for (; next < tensors.size(); ++next) WriteTensor(index, tensors[next]);
  }

  // A virtual source or target is not a tensor.
  void WriteTensor(size_t close_set, VertexId v) {
    if (ends_.is_virtual(v)) return;
    Line("  v{} [label=\"{}\\n{}\", shape=plaintext];", v.index(), TensorNames(v),
         HumanBytes(ends_.vertices[v].memory));
    Line("  c{} -> v{};", close_set, v.index());
  }

  // Returns the results of the vertex's last node, which overwrites the others.
  std::string TensorNames(VertexId v) const {
    std::string names;
    size_t count = 0;
    for (const TensorId output : graph_.node(ends_.vertices[v].nodes.back()).outputs) {
      if (graph_.tensor(output).kind == TensorKind::kStatistic) continue;
      ++count;
      if (count > kMaxNames) continue;
      names += (names.empty() ? "" : ", ") + EscapeForDot(graph_.tensor(output).name);
    }
    if (count > kMaxNames) names += fmt::format(", … {} in all", count);
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
