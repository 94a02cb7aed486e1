#include "lib/files/emit/viewers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/explain/explain_peak.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/training_step.h"

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

namespace {

// In this format, a semicolon ends a frame, and the last blank ends the stack.
std::string FrameOf(std::string_view name) {
  std::string frame = Printable(name, kLongestName);
  std::replace(frame.begin(), frame.end(), ';', ':');
  std::replace(frame.begin(), frame.end(), ' ', '_');
  return frame;
}

std::string StackOf(const TrainingStep& graph, const LiveAtPeak& item) {
  std::string stack(NameOf(item.kind));
  const auto add = [&](std::string_view name) {
    if (!name.empty()) stack += ';' + FrameOf(name);
  };
  if (!item.node.is_none()) {
    for (const std::string& path : graph.ModulesOf(item.node)) add(path);
    add(graph.OpOf(item.node));
  }
  add(item.holds == BufferKind::kWorkspace ? graph.NameOf(item.node) : graph.NameOf(item.tensor));
  return stack;
}

}  // namespace

std::string WritePeakStacks(const TracedPlan& traced) {
  std::map<std::string, Bytes> stacks;
  for (const LiveAtPeak& item : ListLiveAtPeak(traced)) {
    stacks[StackOf(traced.graph, item)] += item.bytes;
  }
  std::string text;
  for (const auto& [stack, bytes] : stacks) text += fmt::format("{} {}\n", stack, bytes.count());
  return text;
}

}  // namespace ckplan
