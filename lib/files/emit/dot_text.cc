#include "lib/files/emit/dot_text.h"

#include "lib/base/check.h"
#include "lib/base/human_bytes.h"
#include "lib/base/quoted_text.h"

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

}  // namespace ckplan
