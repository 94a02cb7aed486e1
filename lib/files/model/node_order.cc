#include "lib/files/model/node_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Calls `use` with each name that a node reads, also within its branches.
void ForEachRead(const onnx::NodeProto& node, const std::function<void(std::string_view)>& use) {
  for (const std::string& name : node.input()) use(name);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const onnx::NodeProto& inner : attribute.g().node()) ForEachRead(inner, use);
    for (const onnx::ValueInfoProto& output : attribute.g().output()) use(output.name());
  }
}

// The nodes that wait for another node, and how many others each node waits for.
struct Waiting {
  std::vector<std::vector<int>> readers;
  std::vector<int> missing;
  bool is_sorted = true;
};

Waiting FindWaiting(const Nodes& nodes) {
  std::unordered_map<std::string_view, int> makers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].output()) {
      if (!name.empty()) makers.emplace(name, i);
    }
  }
  Waiting waiting;
  waiting.readers.resize(static_cast<size_t>(nodes.size()));
  waiting.missing.resize(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) {
    PollStop();
    ForEachRead(nodes[i], [&](std::string_view name) {
      const auto maker = makers.find(name);
      if (maker == makers.end() || maker->second == i) return;
      waiting.readers[static_cast<size_t>(maker->second)].push_back(i);
      ++waiting.missing[static_cast<size_t>(i)];
      waiting.is_sorted = waiting.is_sorted && maker->second < i;
    });
  }
  return waiting;
}

}  // namespace

NodeOrder OrderOf(const Nodes& nodes) {
  NodeOrder order;
  order.nodes.resize(static_cast<size_t>(nodes.size()));
  std::iota(order.nodes.begin(), order.nodes.end(), 0);
  Waiting waiting = FindWaiting(nodes);
  if (waiting.is_sorted) return order;
  // Among the nodes that can run, take the first in the file.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (const int i : order.nodes) {
    if (waiting.missing[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> sorted;
  while (!ready.empty()) {
    PollStop();
    const int node = ready.top();
    ready.pop();
    sorted.push_back(node);
    for (const int reader : waiting.readers[static_cast<size_t>(node)]) {
      if (--waiting.missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  order.is_changed = true;
  for (const int i : order.nodes) {
    if (waiting.missing[static_cast<size_t>(i)] > 0) order.in_cycle.push_back(i);
  }
  sorted.insert(sorted.end(), order.in_cycle.begin(), order.in_cycle.end());
  order.nodes = std::move(sorted);
  return order;
}

}  // namespace ckplan
