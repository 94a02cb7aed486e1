#include "lib/planning/plan/check_constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <limits>
#include <optional>
#include <string_view>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// A node or tensor that patterns can match by any of its names or by its type.
struct Nameable {
  std::vector<std::string_view> names;
  std::string_view type;
};

// Limits on a pattern with wildcards and on a list of patterns: docs/constraints.md. Repeated from
// lib/base, because the checker shares no code with it.
constexpr size_t kLongestForm = 1000;
constexpr size_t kMaxPatterns = 100'000;

// A pattern in which "*" stands for any bytes and "?" for any one byte. Bit i of `Places` is set if
// the first i bytes of the pattern, not counting stars, match the text read so far.
class WildcardPattern {
 public:
  explicit WildcardPattern(std::string_view form)
      : takes_(1 + std::numeric_limits<unsigned char>::max()) {
    for (const char c : form) {
      if (c == '*') {
        repeats_.set(length_);
        continue;
      }
      if (c == '?') {
        for (Places& places : takes_) places.set(length_);
      }
      takes_[static_cast<unsigned char>(c)].set(length_++);
    }
  }

  bool IsOf(std::string_view text) const {
    Places reached(1);
    for (size_t n = 0; n < text.size() && reached.any(); ++n) {
      if (n % 1024 == 0) PollStop();
      reached = (reached & takes_[static_cast<unsigned char>(text[n])]) << 1 | (reached & repeats_);
    }
    return reached[length_];
  }

 private:
  using Places = std::bitset<kLongestForm + 1>;

  std::vector<Places> takes_;  // Indexed by byte: the places that the byte advances.
  Places repeats_;             // The places of stars, which any byte leaves unchanged.
  size_t length_ = 0;
};

class Pattern {
 public:
  explicit Pattern(std::string_view pattern)
      : rest_(pattern), is_exclusion_(rest_.starts_with("!")) {
    if (is_exclusion_) rest_.remove_prefix(1);
    if (rest_.starts_with("op:")) {
      is_type_ = true;
      rest_.remove_prefix(3);
    }
    const bool has_wildcards = rest_.find_first_of("*?") != std::string_view::npos;
    is_too_long_ = has_wildcards && rest_.size() > kLongestForm;
    if (has_wildcards && !is_too_long_) form_.emplace(rest_);
  }

  bool is_exclusion() const { return is_exclusion_; }
  bool is_too_long() const { return is_too_long_; }

  bool Matches(const Nameable& thing) const {
    const auto fits = [&](std::string_view name) {
      return name == rest_ || (form_ && form_->IsOf(name));
    };
    if (is_type_) return fits(thing.type);
    return std::any_of(thing.names.begin(), thing.names.end(), fits);
  }

 private:
  std::string_view rest_;  // The pattern without its prefixes.
  bool is_exclusion_ = false;
  bool is_type_ = false;
  bool is_too_long_ = false;
  std::optional<WildcardPattern> form_;
};

// The constraints on each node or operation.
struct ConstraintFlags {
  std::vector<bool> is_kept;
  std::vector<bool> is_recomputed;
  std::vector<bool> runs_once;
};

// Returns which things the patterns select. The last pattern that matches decides. If the first
// pattern starts with "!", things that match no pattern are selected.
std::vector<bool> SelectByPatterns(std::string_view field, const std::vector<std::string>& patterns,
                                   const std::vector<Nameable>& things,
                                   std::vector<std::string>* faults) {
  if (patterns.size() > kMaxPatterns) {
    faults->push_back(fmt::format("constraints: request.{}: {} patterns exceed the limit", field,
                                  patterns.size()));
    return std::vector<bool>(things.size());
  }
  const bool begins_with_all = !patterns.empty() && patterns.front().starts_with("!");
  std::vector<bool> chosen;
  for (const Nameable& thing : things) chosen.push_back(begins_with_all && !thing.names.empty());
  for (const std::string& text : patterns) {
    const Pattern pattern(text);
    bool is_any = false;
    for (size_t i = 0; i < things.size(); ++i) {
      PollStop();
      if (things[i].names.empty() || !pattern.Matches(things[i])) continue;
      is_any = true;
      chosen[i] = !pattern.is_exclusion();
    }
    if (is_any) continue;
    faults->push_back(fmt::format(
        "constraints: request.{}: {} \"{}\"", field,
        pattern.is_too_long() ? "this pattern is too long:" : "nothing is called", text));
  }
  return chosen;
}

// `producers` are the nodes that may be kept or recomputed, with the names of their results; other
// nodes have no names there. `runners` are the nodes that may be required to run once.
ConstraintFlags ResolveConstraints(const PlanRequest& request,
                                   const std::vector<Nameable>& producers,
                                   const std::vector<Nameable>& runners,
                                   std::vector<std::string>* faults) {
  return {SelectByPatterns("keep", request.keep, producers, faults),
          SelectByPatterns("recompute", request.recompute, producers, faults),
          SelectByPatterns("never_rerun", request.never_rerun, runners, faults)};
}

bool HasNoConstraints(const PlanRequest& request) {
  return request.keep.empty() && request.recompute.empty() && request.never_rerun.empty() &&
         request.never_offload.empty();
}

// The number of runs of each node, and the step of the last one.
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
  return fmt::format("constraints: \"{}\" runs twice, but must {}", name, why);
}

std::string ReadsKept(size_t step, std::string_view reader, std::string_view value) {
  return fmt::format(
      "constraints: step {}: \"{}\" reads the forward pass's \"{}\", which must be recomputed",
      step, reader, value);
}

// Reports a run beyond the first if the constraints forbid it.
void ValidateRepeat(const ConstraintFlags& flags, const RunCount& count, size_t thing,
                    std::string_view name, std::vector<std::string>* faults) {
  if (count.runs[thing] != 2) return;
  if (flags.is_kept[thing]) faults->push_back(RunsTwice(name, "be kept"));
  if (flags.runs_once[thing]) faults->push_back(RunsTwice(name, "never run again"));
}

// Counts the steps of the forward pass, which ends with the last first run of a forward operation
// before any backward operation runs.
size_t StepsOfForwardPass(const JointGraph& graph, const Schedule& schedule,
                          const std::vector<bool>& is_backward) {
  std::vector<bool> has_run(graph.ops().size());
  size_t end = 0;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    if (schedule.steps[k].kind != StepKind::kRun) continue;
    const auto op = static_cast<size_t>(schedule.steps[k].index);
    if (is_backward[op]) break;
    if (!has_run[op]) end = k + 1;
    has_run[op] = true;
  }
  return end;
}

// True for each value that must be recomputed or shares the memory of one that must. Inputs and
// their aliases are excluded.
IdVector<ValueId, bool> ValuesToRecompute(const JointGraph& graph,
                                          const std::vector<bool>& is_recomputed) {
  IdVector<ValueId, bool> must_recompute(graph.values().size());
  for (const OpId id : graph.ops().ids()) {
    PollStop();
    for (const ValueId write : graph.op(id).writes) {
      const ValueId base = graph.value(write).alias_of;
      must_recompute[write] = is_recomputed[static_cast<size_t>(id.index())] ||
                              (!base.is_none() && must_recompute[base]);
    }
  }
  return must_recompute;
}

std::vector<std::string> BrokenInNodes(const TensorGraph& graph, const PlanRequest& request,
                                       const Schedule& schedule) {
  std::vector<std::string> faults;
  if (HasNoConstraints(request)) return faults;
  std::vector<Nameable> nodes;
  std::vector<Nameable> producers;
  for (const Node& node : graph.nodes()) {
    nodes.push_back({{node.name}, node.op});
    producers.push_back(nodes.back());
    for (const TensorId output : node.outputs) {
      producers.back().names.push_back(graph.tensor(output).name);
    }
  }
  const ConstraintFlags flags = ResolveConstraints(request, producers, nodes, &faults);
  const auto loss = std::find_if(schedule.steps.begin(), schedule.steps.end(),
                                 [](const Step& step) { return step.kind == StepKind::kLoss; });
  const auto loss_at = static_cast<size_t>(loss - schedule.steps.begin());
  RunCount count(graph.nodes().size());
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind != StepKind::kForward && step.kind != StepKind::kBackward) continue;
    const bool is_forward = step.kind == StepKind::kForward;
    const Node& node = graph.node(step.node());
    const auto at = static_cast<size_t>(step.index);
    const bool is_late = !is_forward || (k > loss_at && count.runs[at] > 0);
    for (const TensorId read : is_forward ? node.inputs : node.backward_reads) {
      const NodeId producer = graph.tensor(read).producer;
      if (!is_late || producer.is_none()) continue;
      const auto producer_index = static_cast<size_t>(producer.index());
      const bool is_made_late =
          count.runs[producer_index] > 1 && count.last[producer_index] > loss_at;
      if (!flags.is_recomputed[producer_index] || is_made_late) continue;
      faults.push_back(ReadsKept(k, node.name, graph.tensor(read).name));
    }
    if (!is_forward) continue;
    count.Add(at, k);
    ValidateRepeat(flags, count, at, node.name, &faults);
  }
  return faults;
}

// Reports transfers of values that must stay on the device: kept, recomputed and named values, and
// all values that share their memory.
void ValidateTransfers(const JointGraph& graph, const ConstraintFlags& flags,
                       const PlanRequest& request, const Schedule& schedule,
                       std::vector<std::string>* faults) {
  std::vector<Nameable> values;
  for (const Value& value : graph.values()) {
    values.emplace_back();
    if (value.producer.is_none()) continue;
    const Operation& producer = graph.op(value.producer);
    values.back() = {{value.name, producer.name}, producer.op};
  }
  const std::vector<bool> is_named =
      SelectByPatterns("never_offload", request.never_offload, values, faults);
  IdVector<ValueId, std::string_view> stays(
      graph.values().size());  // The reason; empty if it may move.
  for (const ValueId v : graph.values().ids()) {
    const Value& value = graph.value(v);
    if (value.producer.is_none()) continue;
    const auto producer = static_cast<size_t>(value.producer.index());
    if (flags.is_kept[producer]) stays[value.storage] = "be kept";
    if (flags.is_recomputed[producer]) stays[value.storage] = "be recomputed";
    if (is_named[static_cast<size_t>(v.index())]) stays[value.storage] = "never be on the host";
  }
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    if (schedule.steps[k].kind != StepKind::kOut) continue;
    const ValueId v = schedule.steps[k].tensor();
    if (stays[v].empty()) continue;
    faults->push_back(fmt::format("constraints: step {}: \"{}\" is copied to the host, but must {}",
                                  k, graph.value(v).name, stays[v]));
  }
}

std::vector<std::string> BrokenInRuns(const JointGraph& graph, const PlanRequest& request,
                                      const Schedule& schedule) {
  std::vector<std::string> faults;
  if (HasNoConstraints(request)) return faults;
  std::vector<Nameable> ops;
  std::vector<Nameable> producers;
  std::vector<bool> is_backward;
  for (const Operation& op : graph.ops()) {
    ops.push_back({{op.name}, op.op});
    producers.emplace_back();
    is_backward.push_back(op.phase == Phase::kBackward && op.op != "Loss");
    if (op.phase == Phase::kBackward) continue;
    producers.back() = ops.back();
    for (const ValueId write : op.writes) producers.back().names.push_back(graph.value(write).name);
  }
  const ConstraintFlags flags = ResolveConstraints(request, producers, ops, &faults);
  const size_t end = StepsOfForwardPass(graph, schedule, is_backward);
  RunCount count(graph.ops().size());
  const IdVector<ValueId, bool> must_recompute = ValuesToRecompute(graph, flags.is_recomputed);
  // True if the value was recomputed after the forward pass, or need not be.
  const auto may_be_read = [&](ValueId value) {
    const OpId producer = graph.value(value).producer;
    if (producer.is_none() || is_backward[static_cast<size_t>(producer.index())]) return true;
    const auto at = static_cast<size_t>(producer.index());
    return (count.runs[at] > 1 && count.last[at] >= end) || !must_recompute[value];
  };
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    if (schedule.steps[k].kind != StepKind::kRun) continue;
    const auto at = static_cast<size_t>(schedule.steps[k].index);
    const Operation& op = graph.op(schedule.steps[k].node());
    if (is_backward[at] || (k >= end && count.runs[at] > 0)) {
      for (const ValueId read : op.reads) {
        if (!may_be_read(read)) faults.push_back(ReadsKept(k, op.name, graph.value(read).name));
      }
    }
    count.Add(at, k);
    ValidateRepeat(flags, count, at, op.name, &faults);
  }
  ValidateTransfers(graph, flags, request, schedule, &faults);
  return faults;
}

}  // namespace

std::vector<std::string> BrokenConstraints(const TrainingStep& step, const PlanRequest& request,
                                           const Schedule& schedule) {
  return step.is_joint() ? BrokenInRuns(step.joint(), request, schedule)
                         : BrokenInNodes(step.forward(), request, schedule);
}

}  // namespace ckplan
