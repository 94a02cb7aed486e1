#include "lib/planning/plan/diff_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/problem/graph/origins.h"

namespace ckplan {
namespace {

using Row = PlanDigest::Row;

constexpr size_t kMaxGroups = 10;
constexpr std::string_view kNoModule = "(no module)";

// Groups in the order of their first nodes.
RowGroups GroupsByName(GroupKind kind, const std::vector<std::string>& name_of_node) {
  RowGroups groups{kind, {}, {}};
  std::map<std::string_view, size_t> by_name;
  for (const std::string& name : name_of_node) {
    const auto [entry, is_new] = by_name.try_emplace(name, groups.names.size());
    if (is_new) groups.names.push_back(name);
    groups.group_of.push_back(entry->second);
  }
  return groups;
}

const Row& LatestRow(const MatchedRows& node) {
  return node.newer != nullptr ? *node.newer : *node.older;
}

std::vector<std::string> ModulesOf(const MatchedRows& node) {
  const bool is_known = node.modules != nullptr && !node.modules->empty();
  return is_known ? *node.modules : ModulesInName(LatestRow(node).name);
}

// Returns nullopt if the outermost level has too many modules, or if one module has all nodes.
std::optional<RowGroups> GroupByModules(const std::vector<MatchedRows>& nodes) {
  std::vector<std::vector<std::string>> chains;
  size_t deepest = 0;
  for (const MatchedRows& node : nodes) {
    chains.push_back(ModulesOf(node));
    deepest = std::max(deepest, chains.back().size());
  }
  std::optional<RowGroups> found;
  for (size_t depth = 1; depth <= deepest; ++depth) {
    std::vector<std::string> names;
    for (const std::vector<std::string>& chain : chains) {
      names.push_back(chain.empty() ? std::string(kNoModule)
                                    : chain[std::min(depth, chain.size()) - 1]);
    }
    RowGroups groups = GroupsByName(GroupKind::kModule, names);
    if (groups.names.size() > kMaxGroups) break;
    if (groups.names.size() > 1) found = std::move(groups);
  }
  return found;
}

int64_t SegmentCount(const std::vector<MatchedRows>& nodes, const Row* MatchedRows::*side) {
  int64_t last = 0;
  for (const MatchedRows& node : nodes) {
    if (node.*side != nullptr) last = std::max<int64_t>(last, (node.*side)->decision.segment);
  }
  return last + 1;
}

// Names a group of segments: "segment 4", or "segments 4-7" if several are combined.
std::string NameOfSegments(int64_t segment, int64_t count) {
  // One group is reserved for nodes without a segment.
  const auto groups = static_cast<int64_t>(kMaxGroups) - 1;
  if (count <= groups) return fmt::format("segment {}", segment);
  const int64_t length = (count + groups - 1) / groups;
  const int64_t first = segment / length * length;
  const int64_t last = std::min(first + length, count) - 1;
  return first == last ? fmt::format("segment {}", first)
                       : fmt::format("segments {}-{}", first, last);
}

// Returns nullopt unless a plan has several segments.
std::optional<RowGroups> GroupBySegments(const std::vector<MatchedRows>& nodes) {
  for (const auto side : {&MatchedRows::newer, &MatchedRows::older}) {
    const int64_t count = SegmentCount(nodes, side);
    if (count < 2) continue;
    std::vector<std::string> names;
    for (const MatchedRows& node : nodes) {
      const Row* const row = node.*side;
      names.push_back(row == nullptr ? "(only in the other plan)"
                                     : NameOfSegments(row->decision.segment, count));
    }
    return GroupsByName(GroupKind::kSegment, names);
  }
  return std::nullopt;
}

RowGroups GroupByOrder(const std::vector<MatchedRows>& nodes) {
  const size_t length = (nodes.size() + kMaxGroups - 1) / kMaxGroups;
  RowGroups groups;
  for (size_t begin = 0; begin < nodes.size(); begin += length) {
    const size_t last = std::min(begin + length, nodes.size()) - 1;
    groups.group_of.insert(groups.group_of.end(), last + 1 - begin, groups.names.size());
    const std::string& name = LatestRow(nodes[begin]).name;
    groups.names.push_back(
        begin == last ? name : fmt::format("{} ... {}", name, LatestRow(nodes[last]).name));
  }
  return groups;
}

}  // namespace

RowGroups GroupRows(const std::vector<MatchedRows>& nodes) {
  if (auto modules = GroupByModules(nodes)) return *std::move(modules);
  if (auto segments = GroupBySegments(nodes)) return *std::move(segments);
  return GroupByOrder(nodes);
}

}  // namespace ckplan
