#include "lib/emit/joint_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/human_bytes.h"
#include "lib/emit/dot_text.h"

namespace ckplan {
namespace {

constexpr std::string_view kPlainStyle = "shape=box";
constexpr std::string_view kKeepStyle = "shape=box, style=filled, fillcolor=\"#56B4E9\"";
constexpr std::string_view kRecomputeStyle = "shape=ellipse, style=filled, fillcolor=\"#E69F00\"";
constexpr std::string_view kDropStyle = "shape=hexagon, style=dashed";

std::string_view StyleOf(NodeAction action) {
  if (action == NodeAction::kRecompute) return kRecomputeStyle;
  return action == NodeAction::kKeep ? kKeepStyle : kDropStyle;
}

class JointDotWriter {
 public:
  JointDotWriter(const JointGraph& graph, const Plan* plan) : graph_(graph), plan_(plan) {}

  std::string Write() && {
    Line(0, "digraph \"{}\" {{", EscapeForDot(graph_.name()));
    Line(1, "rankdir=TB;");
    Line(1, "node [fontname=\"Helvetica\", fontsize=11];");
    Line(1, "edge [fontname=\"Helvetica\", fontsize=9];");
    if (plan_ != nullptr) WriteTitle();
    for (const ValueId id : graph_.values().ids()) {
      const Value& value = graph_.value(id);
      if (!value.maker.is_none() || value.readers.empty()) continue;
      Line(1, "v{} [label=\"{}\", shape=plaintext];", id.index(), EscapeForDot(value.name));
    }
    WritePhase(Phase::kForward);
    WritePhase(Phase::kBackward);
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
    Line(1,
         "label=\"{}: peak {}, keep-all {}\\nbox: runs once   ellipse: runs again   hexagon: "
         "dropped\";",
         EscapeForDot(plan_->request.algorithm), HumanBytes(figures.peak),
         HumanBytes(figures.baseline_peak));
  }

  void WritePhase(Phase phase) {
    const auto is_here = [&](const Operation& op) { return op.phase == phase; };
    if (std::none_of(graph_.ops().begin(), graph_.ops().end(), is_here)) return;
    Line(1, "subgraph cluster_{} {{", NameOf(phase));
    Line(2, "label=\"{}\";", NameOf(phase));
    Line(2, "color=\"#999999\";");
    for (const OpId id : graph_.ops().ids()) {
      if (is_here(graph_.op(id))) WriteOperation(id);
    }
    Line(1, "}}");
  }

  void WriteOperation(OpId id) {
    const Operation& op = graph_.op(id);
    std::string label = EscapeForDot(op.name);
    if (!op.op.empty() && op.op != op.name) {
      label += (label.empty() ? "" : "\\n") + EscapeForDot(op.op);
    }
    std::string_view style = kPlainStyle;
    if (plan_ != nullptr) {
      const NodeDecision& decision = plan_->decisions[id];
      style = StyleOf(decision.action);
      if (decision.recompute_count > 0) {
        label += fmt::format("\\nruns {}x", decision.recompute_count + 1);
      }
    }
    Line(2, "n{} [label=\"{}\", {}];", id.index(), label, style);
  }

  // One edge per value and reader. Ids are positions, so edges come in one order always.
  void WriteEdges() {
    for (const ValueId id : graph_.values().ids()) {
      const Value& value = graph_.value(id);
      const std::string from = value.maker.is_none() ? fmt::format("v{}", id.index())
                                                     : fmt::format("n{}", value.maker.index());
      for (const OpId reader : value.readers) {
        Line(1, "{} -> n{} [label=\"{}\", tooltip=\"{}\"];", from, reader.index(),
             HumanBytes(value.bytes), EscapeForDot(value.name));
      }
    }
  }

  const JointGraph& graph_;
  const Plan* plan_;
  std::string text_;
};

}  // namespace

std::string WriteJointDot(const JointGraph& graph, const Plan* plan) {
  CKPLAN_CHECK(plan == nullptr || plan->decisions.size() == graph.ops().size(),
               "a plan decides about every operation of its graph");
  return JointDotWriter(graph, plan).Write();
}

}  // namespace ckplan
