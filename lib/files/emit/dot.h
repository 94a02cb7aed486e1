// Draws a graph, or a plan for it, in Graphviz's DOT language.
//
//   keep              blue box               clusters are segments of the plan, or the phases of
//   recompute         orange ellipse         a joint graph; edges show the sizes of their tensors;
//   transient, drop   white dashed hexagon   recomputed nodes show how often they run
//
// Colour-blind readers can distinguish Okabe and Ito's colours, and each action has its own shape.
// Graph inputs are plain names. Deterministic; O(nodes + edges).
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
#include "lib/problem/schedule/gradient_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Node styles; kPlainStyle is for graphs without a plan.
inline constexpr std::string_view kPlainStyle = "shape=box";
inline constexpr std::string_view kKeepStyle = "shape=box, style=filled, fillcolor=\"#56B4E9\"";
inline constexpr std::string_view kRecomputeStyle =
    "shape=ellipse, style=filled, fillcolor=\"#E69F00\"";

// Writes the DOT text of a picture, from its first line to its last.
class DotPicture {
 public:
  explicit DotPicture(std::string_view name);

  template <typename... Args>
  void Line(size_t depth, fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * depth, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  // Writes the plan's main figures as a title; `legend` explains the shapes.
  void Title(const PlanFigures& figures, std::string_view algorithm, std::string_view legend);
  void BeginCluster(std::string_view id, std::string_view label);
  void EndCluster();
  // Writes an input of the graph.
  void Input(std::string_view id, std::string_view name);
  // Writes a node, whose DOT id is n<index>; `decision` is null without a plan.
  void Node(size_t depth, int32_t index, std::string_view name, std::string_view op,
            const NodeDecision* decision);
  // `is_moved`: the plan moves the value to the host.
  void Edge(std::string_view from, int32_t to, Bytes bytes, std::string_view name,
            bool is_moved = false);

  std::string Finish() &&;

 private:
  std::string text_;
};

// Draws the plan, or only the graph if `plan` is null.
std::string WriteDot(const TrainingStep& step, const Plan* plan);
// Draws every node of a gradient graph; its mirrors are orange ellipses in a cluster of their own.
std::string WriteGradientGraphDot(const GradientGraph& of);

// WriteFoldedDot groups the nodes of a large graph into boxes.
//
// A box is a module, at the deepest level of nesting that has at most kMaxDotBoxes modules. Without
// modules, or with too many, a box is a segment of the plan or, without segments, a run of
// consecutive nodes. A box shows its number of nodes and, for a plan, how many are recomputed and
// the bytes of the kept ones; an edge shows the bytes that flow between two boxes.
inline constexpr size_t kMaxDotBoxes = 60;
// Graphs with more nodes are folded: at about a hundred pixels per node, their pictures would be
// several screens high.
inline constexpr size_t kMaxDotNodes = 60;

// `plan` may be null.
std::string WriteFoldedDot(const TrainingStep& graph, const Plan* plan);

}  // namespace ckplan
