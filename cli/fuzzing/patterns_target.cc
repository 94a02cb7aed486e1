// Name patterns: compares ChooseByName and the checker with the definition.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/request_flags.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/base/name_patterns.h"
#include "lib/planning/plan/check_constraints.h"
#include "lib/planning/plan/constraints.h"

namespace ckplan {
namespace {

constexpr size_t kMaxInputBytes =
    6000;  // The naive matcher's time is proportional to patterns times names.
constexpr size_t kMaxPatternNodes = 40;

// Makes nodes without inputs, each with one uniquely named output.
TensorGraph NodesOf(const std::vector<std::string>& lines) {
  TensorGraphParts parts;
  for (const std::string& line : lines) {
    const size_t tab = line.find('\t');
    Node node;
    node.file_id = static_cast<int64_t>(parts.nodes.size());
    node.name = line.substr(0, tab);
    node.op = tab == std::string::npos ? "" : line.substr(tab + 1);
    Tensor tensor;
    tensor.file_id = node.file_id;
    tensor.name = node.name + "_out";
    tensor.kind = TensorKind::kActivation;
    tensor.requires_grad = true;
    node.outputs = {parts.tensors.push_back(std::move(tensor))};
    parts.outputs.push_back(node.outputs.front());
    parts.nodes.push_back(std::move(node));
  }
  return TensorGraph::Create(std::move(parts)).value();
}

// Matches by the definition, in time proportional to the product of the lengths: finds which
// prefixes of the name each prefix of the pattern matches.
bool MatchesNaively(std::string_view pattern, std::string_view name) {
  std::vector<bool> fits(name.size() + 1);
  fits[0] = true;
  for (const char c : pattern) {
    std::vector<bool> longer(name.size() + 1);
    bool any = false;
    for (size_t n = 0; n <= name.size(); ++n) {
      any = any || fits[n];
      if (c == '*')
        longer[n] = any;
      else if (n > 0)
        longer[n] = fits[n - 1] && (c == '?' || c == name[n - 1]);
    }
    fits = std::move(longer);
  }
  return fits.back();
}

bool MatchesName(std::string_view pattern, const NamedThing& thing) {
  if (pattern.starts_with("!")) pattern.remove_prefix(1);
  if (pattern.starts_with("op:")) return MatchesNaively(pattern.substr(3), thing.type);
  return std::any_of(thing.names.begin(), thing.names.end(), [&](std::string_view name) {
    return name == pattern || MatchesNaively(pattern, name);
  });
}

// Tries the patterns from last to first.
bool IsChosenNaively(const NamePatterns& patterns, const NamedThing& thing) {
  for (auto pattern = patterns.rbegin(); pattern != patterns.rend(); ++pattern) {
    if (MatchesName(*pattern, thing)) return !pattern->starts_with("!");
  }
  return !patterns.empty() && patterns.front().starts_with("!");
}

bool IsTooLong(std::string_view pattern) {
  if (pattern.starts_with("!")) pattern.remove_prefix(1);
  if (pattern.starts_with("op:")) pattern.remove_prefix(3);
  return IsGlob(pattern) && pattern.size() > kMaxGlobBytes;
}

// Runs every node twice before the loss. The checker must report each node that may run only once,
// exactly once.
Schedule RunEachTwice(const TensorGraph& graph) {
  Schedule schedule;
  for (int i = 0; i < 2; ++i) {
    for (const NodeId id : graph.nodes().ids()) schedule.steps.push_back(Step::Forward(id));
  }
  schedule.steps.push_back(Step::Loss());
  return schedule;
}

void CheckChoices(const TensorGraph& graph, const NamePatterns& patterns) {
  std::vector<NamedThing> things;
  for (const Node& node : graph.nodes()) things.push_back({{node.name}, node.op});
  PlanRequest request;
  request.never_rerun = patterns;
  const Result<std::vector<bool>> chosen = ChooseByName(patterns, things, "operation");
  const Result<Constraints> constraints = ConstraintsOf(graph, request);
  CKPLAN_CHECK(constraints.ok() == chosen.ok(),
               "constraints are rejected if and only if their patterns are");
  const std::vector<std::string> faults = BrokenConstraints(graph, request, RunEachTwice(graph));
  if (!chosen.ok()) {
    const bool has_fault = std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
      return IsTooLong(pattern) ||
             std::none_of(things.begin(), things.end(),
                          [&](const auto& thing) { return MatchesName(pattern, thing); });
    });
    CKPLAN_CHECK(chosen.error().code == ErrorCode::kUsage,
                 "a pattern without a match is a usage error");
    CKPLAN_CHECK(has_fault, "only patterns that match nothing or are too long are rejected");
    CKPLAN_CHECK(!faults.empty(), "the checker rejects the same patterns");
    return;
  }
  size_t count = 0;
  for (size_t i = 0; i < things.size(); ++i) {
    CKPLAN_CHECK((*chosen)[i] == IsChosenNaively(patterns, things[i]),
                 "the last matching pattern decides");
    CKPLAN_CHECK(constraints->runs_once[NodeId(i)] == (*chosen)[i], "chosen operations run once");
    count += (*chosen)[i] ? 1 : 0;
  }
  CKPLAN_CHECK(faults.size() == count, "the checker chooses the same operations");
}

}  // namespace

// The input is a pattern file, then a line "names", then one line per node: its name, a tab and its
// type.
void FuzzPatterns(FuzzInput input) {
  if (input.size() > kMaxInputBytes) return;
  constexpr std::string_view kNames = "\nnames\n";
  const std::string_view text = TextOf(input);
  const size_t end = text.find(kNames);
  if (end == std::string_view::npos) return;
  std::vector<std::string> lines;
  std::string_view rest = text.substr(end + kNames.size());
  while (!rest.empty() && lines.size() < kMaxPatternNodes) {
    lines.emplace_back(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(lines.back().size() + 1, rest.size()));
  }
  if (lines.empty()) return;
  CheckChoices(NodesOf(lines), PatternsInText(text.substr(0, end)));
}

}  // namespace ckplan
