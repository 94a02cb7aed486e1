#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/printable.h"
#include "lib/files/emit/viewers.h"
#include "lib/planning/explain/explain_peak.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
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
