// Draws a graph, or a plan for it: text in the DOT language for `dot -Tsvg`.
//
//   keep              blue box               segments of the plan are clusters, or the phases of
//   recompute         orange ellipse         a joint graph; edges show the sizes of their tensors;
//   transient, drop   white dashed hexagon   what runs more than once says how often
//
// The colours are those of Okabe and Ito, which colour-blind readers can distinguish, and each
// action also has its own shape. Graph inputs are plain names. Deterministic; O(nodes + edges).
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The part that Graphviz pictures of forward and joint graphs share.

// The styles of nodes without a plan, of kept and of recomputed nodes.
inline constexpr std::string_view kPlainStyle = "shape=box";
inline constexpr std::string_view kKeepStyle = "shape=box, style=filled, fillcolor=\"#56B4E9\"";
inline constexpr std::string_view kRecomputeStyle =
    "shape=ellipse, style=filled, fillcolor=\"#E69F00\"";

// Writes a picture of operations and of what flows between them, from its first line to its last.
class DotPicture {
 public:
  explicit DotPicture(std::string_view name);

  template <typename... Args>
  void Line(size_t depth, fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * depth, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  // Writes the figures of the plan; `legend` explains the shapes.
  void Title(const PlanFigures& figures, std::string_view algorithm, std::string_view legend);
  void BeginCluster(std::string_view id, std::string_view label);
  void EndCluster();
  // Writes a value that is given from outside, under its own id.
  void Input(std::string_view id, std::string_view name);
  // Writes a node named n0, n1, ... by its index; `decision` is null if there is no plan.
  void Node(size_t depth, int32_t index, std::string_view name, std::string_view op,
            const NodeDecision* decision);
  // `is_moved`: the value is on the host for a part of the step.
  void Edge(std::string_view from, int32_t to, Bytes bytes, std::string_view name,
            bool is_moved = false);

  std::string Finish() &&;

 private:
  std::string text_;
};

// `plan` may be null, which draws the graph alone. Otherwise it must be a plan for the step.
std::string WriteDot(const TrainingStep& step, const Plan* plan);

// Draws a graph, or a plan for it, by modules for Graphviz. It is used for graphs that are too
// large to view node by node.
//
// A box is a module, at the deepest level of nesting that has at most kMaxDotBoxes modules. If
// nodes are in no modules, or in too many, a box is a segment of the plan or, without segments, a
// run of consecutive nodes. A box shows its number of nodes and, for a plan, how many of them are
// recomputed and how many bytes the kept ones make; an edge shows the bytes between two boxes.
inline constexpr size_t kMaxDotBoxes = 60;
// Graphs with more nodes are folded. Graphviz draws about a hundred pixels for each, so a picture
// of more is several screens high.
inline constexpr size_t kMaxDotNodes = 60;

// `plan` may be null.
std::string WriteFoldedDot(const TrainingStep& graph, const Plan* plan);

}  // namespace ckplan
