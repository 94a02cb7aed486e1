#include <fmt/format.h>

#include <set>
#include <utility>

#include "lib/base/printable.h"
#include "lib/files/emit/json_writer.h"
#include "lib/files/emit/viewers.h"
#include "lib/problem/graph/node_name.h"

namespace ckplan {
namespace {

// Okabe and Ito's colours.
std::string_view ColourOf(NodeAction action) {
  switch (action) {
    case NodeAction::kKeep:
      return "#0072B2";
    case NodeAction::kRecompute:
      return "#E69F00";
    case NodeAction::kTransient:
      return "#BBBBBB";
    case NodeAction::kDrop:
      break;
  }
  return "#FFFFFF";
}

std::string ValueOf(const NodeDecision& decision) {
  const std::string action(NameOf(decision.action));
  if (decision.recompute_count <= 1) return action;
  return fmt::format("{} {} times", action, decision.recompute_count);
}

}  // namespace

std::string WriteModelExplorer(const TensorGraph& graph, const Plan& plan) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("name").Text(fmt::format("ckplan: {}", plan.request.algorithm));
  json.Key("showExpandedSummaryOnGroupNode").Boolean(true);
  json.Key("results").BeginObject(JsonLayout::kLines);
  std::set<std::string> written;  // The viewer shows only one of several nodes with the same name.
  for (const NodeId node : graph.nodes().ids()) {
    std::string name = WellFormedUtf8(ShownName(graph, node));
    if (!written.insert(name).second) continue;
    const NodeDecision& decision = plan.decisions[node];
    json.Key(name).BeginObject(JsonLayout::kInline);
    json.Key("value").Text(ValueOf(decision));
    json.Key("bgColor").Text(ColourOf(decision.action)).End();
  }
  json.End().End();
  return std::move(json).Finish();
}

}  // namespace ckplan
