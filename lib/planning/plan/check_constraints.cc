#include "lib/planning/plan/check_constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// A node or tensor that patterns may match, by any of its names or by its type.
struct Nameable {
  std::vector<std::string_view> names;
  std::string_view type;
};

// No pattern with wildcards is longer, and no list has more patterns: docs/constraints.md. lib/base
// has the same limits, but this file does not share them.
constexpr size_t kLongestForm = 1000;
constexpr size_t kMaxPatterns = 100'000;

// A pattern: "*" stands for any bytes, "?" for any one byte. Bit i of
// `Places` says that the first i bytes of the pattern, without stars, may match the text read so
// far.
class Form {
 public:
  explicit Form(std::string_view form) : takes_(1 + std::numeric_limits<unsigned char>::max()) {
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

  std::vector<Places> takes_;  // Indexed by byte: the places from which the byte leads to the next.
  Places repeats_;             // The places of stars, where any byte leads back to the same place.
  size_t length_ = 0;
};

class Pattern {
 public:
  explicit Pattern(std::string_view pattern) : rest_(pattern), leaves_out_(rest_.starts_with("!")) {
    if (leaves_out_) rest_.remove_prefix(1);
    if (rest_.starts_with("op:")) {
      is_type_ = true;
      rest_.remove_prefix(3);
    }
    const bool has_wildcards = rest_.find_first_of("*?") != std::string_view::npos;
    is_too_long_ = has_wildcards && rest_.size() > kLongestForm;
    if (has_wildcards && !is_too_long_) form_.emplace(rest_);
  }

  bool leaves_out() const { return leaves_out_; }
  bool is_too_long() const { return is_too_long_; }

  bool IsMeant(const Nameable& thing) const {
    const auto fits = [&](std::string_view name) {
      return name == rest_ || (form_ && form_->IsOf(name));
    };
    if (is_type_) return fits(thing.type);
    return std::any_of(thing.names.begin(), thing.names.end(), fits);
  }

 private:
  std::string_view rest_;  // The pattern without the signs in front.
  bool leaves_out_ = false;
  bool is_type_ = false;
  bool is_too_long_ = false;
  std::optional<Form> form_;
};

// The constraints on each node or operation.
struct Asked {
  std::vector<bool> is_kept;
  std::vector<bool> is_recomputed;
  std::vector<bool> runs_once;
};

// Returns which things the patterns choose. The last pattern that matches decides. If the first
// pattern begins with "!", everything that no pattern matches is included.
std::vector<bool> Chosen(std::string_view field, const std::vector<std::string>& patterns,
                         const std::vector<Nameable>& things, std::vector<std::string>* faults) {
  if (patterns.size() > kMaxPatterns) {
    faults->push_back(
        fmt::format("constraints: request.{}: {} patterns are too many", field, patterns.size()));
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
      if (things[i].names.empty() || !pattern.IsMeant(things[i])) continue;
      is_any = true;
      chosen[i] = !pattern.leaves_out();
    }
    if (is_any) continue;
    faults->push_back(fmt::format("constraints: request.{}: {} \"{}\"", field,
                                  pattern.is_too_long() ? "too long is" : "nothing is called",
                                  text));
  }
  return chosen;
}

// `producers` are the nodes that may be kept or recomputed, with the names of their results, and
// nothing for others. `runners` are the nodes that may be required to run once.
Asked RequestedConstraints(const PlanRequest& request, const std::vector<Nameable>& producers,
                           const std::vector<Nameable>& runners, std::vector<std::string>* faults) {
  return {Chosen("keep", request.keep, producers, faults),
          Chosen("recompute", request.recompute, producers, faults),
          Chosen("never_rerun", request.never_rerun, runners, faults)};
}

bool HasNone(const PlanRequest& request) {
  return request.keep.empty() && request.recompute.empty() && request.never_rerun.empty() &&
         request.never_offload.empty();
}

// How often each node has run, and at which step last.
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

// Adds the faults of a run beyond the first.
void ValidateRepeat(const Asked& asked, const RunCount& count, size_t thing, std::string_view name,
                    std::vector<std::string>* faults) {
  if (count.runs[thing] != 2) return;
  if (asked.is_kept[thing]) faults->push_back(RunsTwice(name, "to be kept"));
  if (asked.runs_once[thing]) faults->push_back(RunsTwice(name, "never to run again"));
}

// Returns the number of steps of the forward pass. It ends with the last first run of a forward
// operation before the first run of a backward operation.
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

// Whether each value, or the base whose memory it shares, must be recomputed. Values given from
// outside and their aliases need not be.
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
  if (HasNone(request)) return faults;
  std::vector<Nameable> nodes;
  std::vector<Nameable> producers;
  for (const Node& node : graph.nodes()) {
    nodes.push_back({{node.name}, node.op});
    producers.push_back(nodes.back());
    for (const TensorId output : node.outputs) {
      producers.back().names.push_back(graph.tensor(output).name);
    }
  }
  const Asked asked = RequestedConstraints(request, producers, nodes, &faults);
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
      const auto made = static_cast<size_t>(producer.index());
      const bool is_made_late = count.runs[made] > 1 && count.last[made] > loss_at;
      if (!asked.is_recomputed[made] || is_made_late) continue;
      faults.push_back(ReadsKept(k, node.name, graph.tensor(read).name));
    }
    if (!is_forward) continue;
    count.Add(at, k);
    ValidateRepeat(asked, count, at, node.name, &faults);
  }
  return faults;
}

// Adds the faults of transfers: kept, recomputed and named values stay on the device, and with them
// the values whose memory they share.
void ValidateTransfers(const JointGraph& graph, const Asked& asked, const PlanRequest& request,
                       const Schedule& schedule, std::vector<std::string>* faults) {
  std::vector<Nameable> values;
  for (const Value& value : graph.values()) {
    values.emplace_back();
    if (value.producer.is_none()) continue;
    const Operation& producer = graph.op(value.producer);
    values.back() = {{value.name, producer.name}, producer.op};
  }
  const std::vector<bool> is_named = Chosen("never_offload", request.never_offload, values, faults);
  IdVector<ValueId, std::string_view> stays(graph.values().size());  // Why; empty if it may move.
  for (const ValueId v : graph.values().ids()) {
    const Value& value = graph.value(v);
    if (value.producer.is_none()) continue;
    const auto producer = static_cast<size_t>(value.producer.index());
    if (asked.is_kept[producer]) stays[value.storage] = "to be kept";
    if (asked.is_recomputed[producer]) stays[value.storage] = "to be recomputed";
    if (is_named[static_cast<size_t>(v.index())]) stays[value.storage] = "never to be on the host";
  }
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    if (schedule.steps[k].kind != StepKind::kOut) continue;
    const ValueId v = schedule.steps[k].tensor();
    if (stays[v].empty()) continue;
    faults->push_back(fmt::format("constraints: step {}: \"{}\" is copied to the host, and is {}",
                                  k, graph.value(v).name, stays[v]));
  }
}

std::vector<std::string> BrokenInRuns(const JointGraph& graph, const PlanRequest& request,
                                      const Schedule& schedule) {
  std::vector<std::string> faults;
  if (HasNone(request)) return faults;
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
  const Asked asked = RequestedConstraints(request, producers, ops, &faults);
  const size_t end = StepsOfForwardPass(graph, schedule, is_backward);
  RunCount count(graph.ops().size());
  const IdVector<ValueId, bool> must_recompute = ValuesToRecompute(graph, asked.is_recomputed);
  // Whether the value has been made after the forward pass, or need not be.
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
    ValidateRepeat(asked, count, at, op.name, &faults);
  }
  ValidateTransfers(graph, asked, request, schedule, &faults);
  return faults;
}

}  // namespace

std::vector<std::string> BrokenConstraints(const TrainingStep& step, const PlanRequest& request,
                                           const Schedule& schedule) {
  return step.is_joint() ? BrokenInRuns(step.joint(), request, schedule)
                         : BrokenInNodes(step.forward(), request, schedule);
}

}  // namespace ckplan
