// What pictures of graphs for Graphviz share: those of forward graphs and of joint graphs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/units.h"
#include "lib/plan/plan.h"

namespace ckplan {

// Of nodes without a plan, and of those that are kept and recomputed.
inline constexpr std::string_view kPlainStyle = "shape=box";
inline constexpr std::string_view kKeepStyle = "shape=box, style=filled, fillcolor=\"#56B4E9\"";
inline constexpr std::string_view kRecomputeStyle =
    "shape=ellipse, style=filled, fillcolor=\"#E69F00\"";

// Text inside the double quotes of a DOT file. dot reads backslash escapes and HTML entities in
// labels: the text is shown as it is, made printable and short.
std::string EscapeForDot(std::string_view text);

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

  // What the plan needs; `legend` says what the shapes mean.
  void Title(const PlanFigures& figures, std::string_view algorithm, std::string_view legend);
  void BeginCluster(std::string_view id, std::string_view label);
  void EndCluster();
  // What is given from outside, under an id of its own.
  void Input(std::string_view id, std::string_view name);
  // Named n0, n1, ... by its index; `decision` is null where there is no plan.
  void Node(size_t depth, int32_t index, std::string_view name, std::string_view op,
            const NodeDecision* decision);
  void Edge(std::string_view from, int32_t to, Bytes bytes, std::string_view name);

  std::string Finish() &&;

 private:
  std::string text_;
};

}  // namespace ckplan
