// The part that Graphviz pictures of forward and joint graphs share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

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

}  // namespace ckplan
