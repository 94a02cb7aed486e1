#include "lib/plan/check_constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace ckplan {
namespace {

// Something that patterns may name: by any of its names, or by its type.
struct Nameable {
  std::vector<std::string_view> names;
  std::string_view type;
};

// Whether the whole text is of the form: "*" is any bytes, "?" any one.
bool IsOfForm(std::string_view form, std::string_view text) {
  std::vector<bool> reaches(text.size() + 1);  // What has been read of the form fits so many bytes.
  reaches[0] = true;
  for (const char c : form) {
    if (c == '*') {
      std::fill(std::find(reaches.begin(), reaches.end(), true), reaches.end(), true);
      continue;
    }
    for (size_t n = text.size(); n > 0; --n) {
      reaches[n] = reaches[n - 1] && (c == '?' || c == text[n - 1]);
    }
    reaches[0] = false;
  }
  return reaches.back();
}

bool IsMeant(std::string_view pattern, const Nameable& thing) {
  if (pattern.starts_with("!")) pattern.remove_prefix(1);
  if (pattern.starts_with("op:")) return IsOfForm(pattern.substr(3), thing.type);
  return std::any_of(thing.names.begin(), thing.names.end(), [&](std::string_view name) {
    return name == pattern || IsOfForm(pattern, name);
  });
}

// The last pattern that means the thing decides; one in front of all others that begins with "!"
// leaves all else in.
bool IsChosen(const std::vector<std::string>& patterns, const Nameable& thing) {
  for (auto pattern = patterns.rbegin(); pattern != patterns.rend(); ++pattern) {
    if (IsMeant(*pattern, thing)) return !pattern->starts_with("!");
  }
  return !patterns.empty() && patterns.front().starts_with("!");
}

// What is asked of each node or operation.
struct Asked {
  std::vector<bool> is_kept;
  std::vector<bool> is_recomputed;
  std::vector<bool> runs_once;
};

// `makers`: what may be kept or recomputed, with the names of its results; nothing for what may
// not. `runners`: what may run once.
Asked WhatIsAsked(const PlanRequest& request, const std::vector<Nameable>& makers,
                  const std::vector<Nameable>& runners, std::vector<std::string>* faults) {
  const auto choose = [&](std::string_view field, const std::vector<std::string>& patterns,
                          const std::vector<Nameable>& things) {
    for (const std::string& pattern : patterns) {
      const bool is_any = std::any_of(things.begin(), things.end(), [&](const Nameable& thing) {
        return !thing.names.empty() && IsMeant(pattern, thing);
      });
      if (is_any) continue;
      faults->push_back(
          fmt::format("constraints: request.{}: nothing is called \"{}\"", field, pattern));
    }
    std::vector<bool> chosen;
    for (const Nameable& thing : things) {
      chosen.push_back(!thing.names.empty() && IsChosen(patterns, thing));
    }
    return chosen;
  };
  return {choose("keep", request.keep, makers), choose("recompute", request.recompute, makers),
          choose("never_rerun", request.never_rerun, runners)};
}

bool HasNone(const PlanRequest& request) {
  return request.keep.empty() && request.recompute.empty() && request.never_rerun.empty();
}

// How often things have run, and at which step for the last time.
struct RunCount {
  explicit RunCount(size_t things) : runs(things), last(things) {}

  void Add(size_t thing, size_t step) {
    ++runs[thing];
    last[thing] = step;
  }

  std::vector<int64_t> runs;
  std::vector<size_t> last;
};

std::string RunsTwice(std::string_view name, std::string_view why) {
  return fmt::format("constraints: \"{}\" runs twice, and is {}", name, why);
}

std::string ReadsKept(size_t step, std::string_view reader, std::string_view value) {
  return fmt::format(
      "constraints: step {}: \"{}\" reads \"{}\" as the forward pass made it, and that is to be "
      "recomputed",
      step, reader, value);
}

// Faults of a run that is no longer the first.
void JudgeRepeat(const Asked& asked, const RunCount& count, size_t thing, std::string_view name,
                 std::vector<std::string>* faults) {
  if (count.runs[thing] != 2) return;
  if (asked.is_kept[thing]) faults->push_back(RunsTwice(name, "to be kept"));
  if (asked.runs_once[thing]) faults->push_back(RunsTwice(name, "never to run again"));
}

// The number of steps of the forward pass: up to the last first run of what is not `is_backward`
// in front of everything that is.
size_t StepsOfForwardPass(const JointGraph& graph, const Schedule& schedule,
                          const std::vector<bool>& is_backward) {
  std::vector<bool> has_run(graph.ops().size());
  size_t end = 0;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const auto op = static_cast<size_t>(schedule.steps[k].index);
    if (is_backward[op]) break;
    if (!has_run[op]) end = k + 1;
    has_run[op] = true;
  }
  return end;
}

}  // namespace

std::vector<std::string> BrokenConstraints(const TensorGraph& graph, const PlanRequest& request,
                                           const Schedule& schedule) {
  std::vector<std::string> faults;
  if (HasNone(request)) return faults;
  std::vector<Nameable> nodes;
  std::vector<Nameable> makers;
  for (const Node& node : graph.nodes()) {
    nodes.push_back({{node.name}, node.op});
    makers.push_back(nodes.back());
    for (const TensorId output : node.outputs) {
      makers.back().names.push_back(graph.tensor(output).name);
    }
  }
  const Asked asked = WhatIsAsked(request, makers, nodes, &faults);
  const auto loss = std::find_if(schedule.steps.begin(), schedule.steps.end(),
                                 [](const Step& step) { return step.kind == StepKind::kLoss; });
  const auto behind_loss = static_cast<size_t>(loss - schedule.steps.begin());
  RunCount count(graph.nodes().size());
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind != StepKind::kForward && step.kind != StepKind::kBackward) continue;
    const bool is_forward = step.kind == StepKind::kForward;
    const Node& node = graph.node(step.node());
    const auto at = static_cast<size_t>(step.index);
    const bool is_late = !is_forward || (k > behind_loss && count.runs[at] > 0);
    for (const TensorId read : is_forward ? node.inputs : node.backward_reads) {
      const NodeId producer = graph.tensor(read).producer;
      if (!is_late || producer.is_none()) continue;
      const auto maker = static_cast<size_t>(producer.index());
      const bool is_made_late = count.runs[maker] > 1 && count.last[maker] > behind_loss;
      if (!asked.is_recomputed[maker] || is_made_late) continue;
      faults.push_back(ReadsKept(k, node.name, graph.tensor(read).name));
    }
    if (!is_forward) continue;
    count.Add(at, k);
    JudgeRepeat(asked, count, at, node.name, &faults);
  }
  return faults;
}

std::vector<std::string> BrokenConstraints(const JointGraph& graph, const PlanRequest& request,
                                           const Schedule& schedule) {
  std::vector<std::string> faults;
  if (HasNone(request)) return faults;
  std::vector<Nameable> ops;
  std::vector<Nameable> makers;
  std::vector<bool> is_backward;
  for (const Operation& op : graph.ops()) {
    ops.push_back({{op.name}, op.op});
    makers.emplace_back();
    is_backward.push_back(op.phase == Phase::kBackward && op.op != "Loss");
    if (op.phase == Phase::kBackward) continue;
    makers.back() = ops.back();
    for (const ValueId write : op.writes) makers.back().names.push_back(graph.value(write).name);
  }
  const Asked asked = WhatIsAsked(request, makers, ops, &faults);
  const size_t end = StepsOfForwardPass(graph, schedule, is_backward);
  RunCount count(graph.ops().size());
  // Whether the value has been made behind that end, or need not be: neither it nor what it is in
  // the memory of is to be recomputed.
  const auto may_be_read = [&](ValueId value) {
    const OpId maker = graph.value(value).maker;
    if (maker.is_none() || is_backward[static_cast<size_t>(maker.index())]) return true;
    const auto at = static_cast<size_t>(maker.index());
    if (count.runs[at] > 1 && count.last[at] >= end) return true;
    for (; !value.is_none(); value = graph.value(value).alias_of) {
      const OpId made_by = graph.value(value).maker;
      if (!made_by.is_none() && asked.is_recomputed[static_cast<size_t>(made_by.index())]) {
        return false;
      }
    }
    return true;
  };
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const auto at = static_cast<size_t>(schedule.steps[k].index);
    const Operation& op = graph.op(schedule.steps[k].node());
    if (is_backward[at] || (k >= end && count.runs[at] > 0)) {
      for (const ValueId read : op.reads) {
        if (!may_be_read(read)) faults.push_back(ReadsKept(k, op.name, graph.value(read).name));
      }
    }
    count.Add(at, k);
    JudgeRepeat(asked, count, at, op.name, &faults);
  }
  return faults;
}

}  // namespace ckplan
