#include "lib/joint/run_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

constexpr int32_t kNone = -1;

bool OccupiesMemory(const JointGraph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const Value& storage = graph.value(value.storage);
  return IsCountedInPeak(storage.kind) && !storage.maker.is_none();
}

}  // namespace

RunReplay::RunReplay(const JointGraph& graph) : graph_(graph), in_place_of_(graph.values().size()) {
  for (const Operation& op : graph.ops()) {
    for (const auto& [write, read] : op.in_place) {
      const bool is_as_large =
          graph.value(graph.value(read).storage).bytes == graph.value(write).bytes;
      if (is_as_large && OccupiesMemory(graph, read)) in_place_of_[write].push_back(read);
    }
  }
}

Error RunReplay::StepError(size_t step, OpId op, const std::string& fault) const {
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("schedule: step {} (\"{}\") {}", step, graph_.op(op).name, fault));
}

// Fills `versions_` with the step at which each dies.
Result<Done> RunReplay::FindVersions(std::span<const OpId> runs) {
  versions_.clear();
  current_ = IdVector<ValueId, int32_t>(graph_.values().size(), kNone);
  run_count_ = IdVector<OpId, int32_t>(graph_.ops().size());
  for (size_t step = 0; step < runs.size(); ++step) {
    const OpId id = runs[step];
    if (id.is_none() || static_cast<size_t>(id.index()) >= graph_.ops().size()) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("schedule: step {} runs an operation that the graph does not "
                                   "have",
                                   step));
    }
    const Operation& op = graph_.op(id);
    if (run_count_[id]++ > 0 && !op.may_repeat) return StepError(step, id, "must not run twice");
    for (const ValueId read : op.reads) {
      if (graph_.value(read).maker.is_none()) continue;
      if (current_[read] == kNone) {
        return StepError(
            step, id,
            fmt::format("reads value \"{}\", which is not in memory", graph_.value(read).name));
      }
      versions_[static_cast<size_t>(current_[read])].dies_at = static_cast<int32_t>(step);
    }
    for (const ValueId write : op.writes) {
      current_[write] = static_cast<int32_t>(versions_.size());
      versions_.push_back({write, static_cast<int32_t>(step), kNone});
    }
  }
  for (const OpId id : graph_.ops().ids()) {
    if (run_count_[id] > 0 || !graph_.is_needed(id)) continue;
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format("schedule: \"{}\" never runs, and makes a result", graph_.op(id).name));
  }
  for (const ValueId result : graph_.results()) {
    if (graph_.value(result).maker.is_none()) continue;
    versions_[static_cast<size_t>(current_[result])].dies_at = static_cast<int32_t>(runs.size());
  }
  return Done{};
}

// A counting sort, stable: versions that die at one step stay in the order of making.
void RunReplay::SortByDeath(size_t step_count) {
  dying_starts_.assign(step_count + 2, 0);
  for (const Version& version : versions_) {
    ++dying_starts_[static_cast<size_t>(version.dies_at) + 1];
  }
  for (size_t k = 1; k < dying_starts_.size(); ++k) dying_starts_[k] += dying_starts_[k - 1];
  dying_.resize(versions_.size());
  std::vector<int32_t>& next = living_in_;  // Not yet in use for what it is named after.
  next.assign(dying_starts_.begin(), dying_starts_.end());
  for (size_t v = 0; v < versions_.size(); ++v) {
    const auto slot = static_cast<size_t>(next[static_cast<size_t>(versions_[v].dies_at)]++);
    dying_[slot] = static_cast<int32_t>(v);
  }
  living_in_.clear();
}

Result<Done> RunReplay::Run(std::span<const OpId> runs, RunSink* sink) {
  CKPLAN_RETURN_IF_ERROR(FindVersions(runs));
  SortByDeath(runs.size());
  current_ = IdVector<ValueId, int32_t>(graph_.values().size(), kNone);
  size_t made = 0;
  for (size_t step = 0; step < runs.size(); ++step) {
    PollStop();
    const Operation& op = graph_.op(runs[step]);
    for (const ValueId write : op.writes) {
      const int32_t buffer = BufferFor(write, step, sink);
      if (buffer != kNone) ++living_in_[static_cast<size_t>(buffer)];
      versions_[made].buffer = buffer;
      sink->Make(write, buffer);
      // Not current yet: an operation does not read what this run of it writes.
      ++made;
    }
    for (size_t i = 0; i < op.writes.size(); ++i) {
      current_[op.writes[i]] = static_cast<int32_t>(made - op.writes.size() + i);
    }
    sink->Workspace(runs[step]);
    const auto end = static_cast<size_t>(dying_starts_[step + 1]);
    for (auto i = static_cast<size_t>(dying_starts_[step]); i < end; ++i) {
      const int32_t buffer = versions_[static_cast<size_t>(dying_[i])].buffer;
      if (buffer != kNone && --living_in_[static_cast<size_t>(buffer)] == 0) sink->Release(buffer);
    }
    sink->EndStep(runs[step]);
  }
  return Done{};
}

int32_t RunReplay::NewBuffer(ValueId first_value, RunSink* sink) {
  const auto buffer = static_cast<int32_t>(living_in_.size());
  living_in_.push_back(0);
  sink->Allocate(buffer, first_value);
  return buffer;
}

int32_t RunReplay::BufferFor(ValueId write, size_t step, RunSink* sink) {
  if (!OccupiesMemory(graph_, write)) return kNone;
  const ValueId base = graph_.value(write).alias_of;
  if (!base.is_none()) return versions_[static_cast<size_t>(current_[base])].buffer;
  const int32_t taken = TakenOver(write, step);
  return taken != kNone ? taken : NewBuffer(write, sink);
}

// The buffer of a read that dies at this step and that `write` may be put into, or kNone.
int32_t RunReplay::TakenOver(ValueId write, size_t step) const {
  for (const ValueId read : in_place_of_[write]) {
    const Version& version = versions_[static_cast<size_t>(current_[read])];
    // One live version: the one that dies. A write that took the buffer over would be a second.
    const bool is_last = version.dies_at == static_cast<int32_t>(step) &&
                         living_in_[static_cast<size_t>(version.buffer)] == 1;
    if (is_last) return version.buffer;
  }
  return kNone;
}

}  // namespace ckplan
