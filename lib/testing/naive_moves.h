// An independent simulator of schedules with transfers, for tests and fuzzers. It is slow, as
// simple as possible, and shares no code with the simulator or the checker. It applies the
// definitions in lib/problem/schedule/transfers.h to find which version a step reads, and where
// that version is.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/problem/cost/link.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// An independent simulator of runs, for tests and fuzzers. It is as simple as possible, takes at
// least quadratic time, and shares no code with the simulator or the checker.
//
// It applies the definition in lib/problem/schedule/replay.h to find when each version dies, and
// derives the memory at each run from the list of all versions.
class NaiveRuns {
 public:
  // The runs must be a plan of the graph.
  NaiveRuns(const JointGraph& graph, const std::vector<OpId>& runs) : graph_(graph), runs_(runs) {}

  // Call it only once.
  Bytes Peak() {
    Bytes peak;
    for (size_t k = 0; k < runs_.size(); ++k) peak = std::max(peak, Run(k));
    return peak;
  }

  Cost TotalCost() const {
    Cost cost;
    for (const OpId op : runs_) cost += graph_.op(op).cost;
    return cost;
  }

 private:
  struct Version {
    ValueId value;
    size_t made_at = 0;
    size_t dies_at = 0;  // The last run that needs it; the number of runs for a result.
    int block = -1;      // -1 if it does not count toward the peak.
  };

  template <typename T>
  static bool Lists(const std::vector<T>& list, const T& item) {
    return std::count(list.begin(), list.end(), item) > 0;
  }

  // Returns the run at which the version written by run k dies.
  size_t DeathOf(ValueId value, size_t k) const {
    size_t last = k;
    for (size_t later = k + 1; later < runs_.size(); ++later) {
      if (Lists(graph_.op(runs_[later]).reads, value)) last = later;
      if (runs_[later] == runs_[k]) return last;
    }
    return Lists(graph_.results(), value) ? runs_.size() : last;
  }

  ValueId BaseOf(ValueId value) const {
    while (!graph_.value(value).alias_of.is_none()) value = graph_.value(value).alias_of;
    return value;
  }

  bool IsCounted(ValueId value) const {
    const Value& base = graph_.value(BaseOf(value));
    const bool is_kept_apart = base.kind == ValueKind::kConstant ||
                               base.kind == ValueKind::kParameter ||
                               base.kind == ValueKind::kParameterGradient;
    return !base.producer.is_none() && !is_kept_apart;
  }

  // Returns the newest version of the value written before run k.
  const Version& NewestBefore(ValueId value, size_t k) const {
    const Version* newest = nullptr;
    for (const Version& version : versions_) {
      if (version.value == value && version.made_at < k) newest = &version;
    }
    return *newest;
  }

  // Returns the block for a write of run k that is not in versions_ yet.
  int BlockFor(ValueId write, size_t k) {
    if (!IsCounted(write)) return -1;
    const Value& value = graph_.value(write);
    if (!value.alias_of.is_none()) return NewestBefore(value.alias_of, k).block;
    for (const auto& [to, from] : graph_.op(runs_[k]).in_place) {
      if (to != write || !IsCounted(from)) continue;
      if (graph_.value(BaseOf(from)).bytes != value.bytes) continue;
      const Version& read = NewestBefore(from, k);
      const auto shares = std::count_if(versions_.begin(), versions_.end(), [&](const Version& v) {
        return v.block == read.block && v.dies_at >= k;
      });
      if (read.dies_at == k && shares == 1) return read.block;
    }
    bytes_of_block_.push_back(value.bytes);
    return static_cast<int>(bytes_of_block_.size() - 1);
  }

  // Returns the bytes in memory during run k.
  Bytes Run(size_t k) {
    const Operation& op = graph_.op(runs_[k]);
    for (const ValueId write : op.writes) {
      versions_.push_back({write, k, DeathOf(write, k), BlockFor(write, k)});
    }
    std::set<int> blocks;
    for (const Version& version : versions_) {
      if (version.block >= 0 && version.dies_at >= k) blocks.insert(version.block);
    }
    Bytes bytes = op.workspace;
    for (const int block : blocks) bytes += bytes_of_block_[static_cast<size_t>(block)];
    return bytes;
  }

  const JointGraph& graph_;
  const std::vector<OpId>& runs_;
  std::vector<Version> versions_;
  std::vector<Bytes> bytes_of_block_;
};

struct NaiveFigures {
  int64_t peak = 0;
  int64_t host_peak = 0;
  int64_t makespan = 0;
  int64_t stall = 0;
  int64_t transferred = 0;

  bool operator==(const NaiveFigures&) const = default;
};

class NaiveMoves {
 public:
  // Every step must be a run or a transfer of the graph. Keeps references to the arguments.
  NaiveMoves(const JointGraph& graph, const Schedule& schedule, const Link& link)
      : graph_(graph), steps_(schedule.steps), link_(link) {}

  // Returns nullopt if the schedule is invalid.
  std::optional<NaiveFigures> Measure() {
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (!IsAllowed(k)) return std::nullopt;
    }
    if (!IsComplete()) return std::nullopt;
    NaiveFigures figures;
    figures.peak = DevicePeak();
    figures.host_peak = HostPeak();
    MeasureTime(&figures);
    return figures;
  }

 private:
  // A version of a value, identified by the step that created it.
  struct Version {
    ValueId value;
    size_t step = 0;
    auto operator<=>(const Version&) const = default;
  };

  template <typename T>
  static bool Lists(const std::vector<T>& list, const T& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }

  bool IsRun(size_t k) const { return steps_[k].kind == StepKind::kRun; }
  const Operation& OpAt(size_t k) const { return graph_.op(steps_[k].node()); }

  ValueId RootOf(ValueId value) const {
    while (!graph_.value(value).alias_of.is_none()) value = graph_.value(value).alias_of;
    return value;
  }
  bool IsMade(ValueId value) const { return !graph_.value(value).producer.is_none(); }
  bool IsResult(ValueId value) const { return Lists(graph_.results(), value); }
  bool IsCounted(ValueId value) const {
    const Value& root = graph_.value(RootOf(value));
    return !root.producer.is_none() &&
           (root.kind == ValueKind::kValue || root.kind == ValueKind::kArrivingGradient);
  }

  bool IsMovable(ValueId value) const {
    if (RootOf(value) != value || !IsCounted(value)) return false;
    return std::none_of(graph_.results().begin(), graph_.results().end(),
                        [&](ValueId result) { return RootOf(result) == value; });
  }

  bool Makes(size_t k, ValueId value) {
    if (IsRun(k)) return Lists(OpAt(k).writes, value);
    if (steps_[k].kind != StepKind::kIn || RootOf(value) != steps_[k].tensor()) return false;
    if (value == steps_[k].tensor()) return true;
    const std::optional<Version> old = Newest(value, k);  // Dropped aliases return with the value.
    return old && IsDropped(BlockOf(*old), k);
  }

  // Returns the newest version from before step k, whether it is in memory or not.
  std::optional<Version> Newest(ValueId value, size_t k) {
    const auto known = newest_.find({value, k});
    if (known != newest_.end()) return known->second;
    std::optional<Version> found;
    for (size_t made = k; made-- > 0 && !found;) {
      if (Makes(made, value)) found = Version{value, made};
    }
    return newest_[{value, k}] = found;
  }

  // Returns the version that allocated the memory of this version.
  Version BlockOf(const Version& version) {
    const ValueId base = graph_.value(version.value).alias_of;
    if (!IsRun(version.step)) return {steps_[version.step].tensor(), version.step};
    if (base.is_none() || !IsMade(base)) return version;
    return BlockOf(*Newest(base, version.step));
  }

  bool IsDropped(const Version& block, size_t k) {
    for (size_t drop = block.step + 1; drop < k; ++drop) {
      const bool is_drop = steps_[drop] == Step::Drop(block.value);
      if (is_drop && Newest(block.value, drop) == block) return true;
    }
    return false;
  }

  // Returns whether the last `out` before k has no drop before k.
  bool IsUnderWay(ValueId value, size_t k) const {
    bool is_under_way = false;
    for (size_t i = 0; i < k; ++i) {
      if (steps_[i] == Step::Out(value)) is_under_way = true;
      if (steps_[i] == Step::Drop(value)) is_under_way = false;
    }
    return is_under_way;
  }

  bool IsInMemory(ValueId value, size_t k) {
    const std::optional<Version> newest = Newest(value, k);
    return newest && !IsDropped(BlockOf(*newest), k);
  }

  bool IsAllowed(size_t k) {
    const Step& step = steps_[k];
    if (IsRun(k)) {
      const Operation& op = OpAt(k);
      const auto before = std::count(steps_.begin(), steps_.begin() + static_cast<long>(k), step);
      if (before > 0 && !op.may_repeat) return false;
      for (const ValueId read : op.reads) {
        if (IsMade(read) && !IsInMemory(read, k)) return false;
      }
      return std::none_of(op.writes.begin(), op.writes.end(),
                          [&](ValueId write) { return IsUnderWay(write, k); });
    }
    const ValueId value = step.tensor();
    if (!IsMovable(value)) return false;
    if (step.kind == StepKind::kOut) return IsInMemory(value, k) && !IsUnderWay(value, k);
    if (step.kind == StepKind::kDrop) return IsUnderWay(value, k);
    const auto end = steps_.begin() + static_cast<long>(k);
    return std::find(steps_.begin(), end, Step::Drop(value)) != end && !IsUnderWay(value, k);
  }

  bool IsComplete() {
    for (const OpId id : graph_.ops().ids()) {
      const bool runs = std::find(steps_.begin(), steps_.end(), Step::Run(id)) != steps_.end();
      if (graph_.is_needed(id) && !runs) return false;
    }
    for (const ValueId value : graph_.values().ids()) {
      if (IsUnderWay(value, steps_.size())) return false;
    }
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (steps_[k].kind == StepKind::kIn && !FindFirstReader(k)) return false;
    }
    return true;
  }

  // Returns the first run that reads a version created by the `in` at step k.
  std::optional<size_t> FindFirstReader(size_t k) {
    for (size_t run = k + 1; run < steps_.size(); ++run) {
      if (!IsRun(run)) continue;
      for (const ValueId read : OpAt(run).reads) {
        const std::optional<Version> version = IsMade(read) ? Newest(read, run) : std::nullopt;
        if (version && version->step == k) return run;
      }
    }
    return std::nullopt;
  }

  bool Reads(size_t k, ValueId value) const {
    if (IsRun(k)) return Lists(OpAt(k).reads, value);
    return steps_[k] == Step::Out(value) || steps_[k] == Step::Drop(value);
  }

  // Returns the last step that needs the version, or the number of steps for the last version of a
  // result.
  size_t DeathOf(const Version& version) {
    size_t death = version.step;
    for (size_t k = version.step + 1; k < steps_.size(); ++k) {
      if (Reads(k, version.value) && Newest(version.value, k) == version) death = k;
    }
    const bool is_last = Newest(version.value, steps_.size()) == version;
    return is_last && IsResult(version.value) ? steps_.size() : death;
  }

  // Returns the versions that step k creates, in the order of their allocation.
  std::vector<Version> MadeBy(size_t k) {
    std::vector<Version> made;
    if (IsRun(k)) {
      for (const ValueId write : OpAt(k).writes) made.push_back({write, k});
    } else if (steps_[k].kind == StepKind::kIn) {
      made.push_back({steps_[k].tensor(), k});
      for (const ValueId value : graph_.values().ids()) {
        if (value != steps_[k].tensor() && Makes(k, value)) made.push_back({value, k});
      }
    }
    return made;
  }

  struct Held {
    size_t buffer = 0;
    size_t dies = 0;
  };

  // Returns a buffer that the version can reuse in place: that of a read that dies at this step and
  // shares its buffer with no other version.
  std::optional<size_t> FindReusedBuffer(const Version& version,
                                         const std::map<Version, Held>& held) {
    for (const auto& [to, from] : OpAt(version.step).in_place) {
      if (to != version.value || !IsCounted(from)) continue;
      if (graph_.value(RootOf(from)).bytes != graph_.value(to).bytes) continue;
      const Held& read = held.at(*Newest(from, version.step));
      const auto others = std::count_if(held.begin(), held.end(), [&](const auto& other) {
        return other.second.buffer == read.buffer && other.second.dies >= version.step;
      });
      if (read.dies == version.step && others == 1) return read.buffer;
    }
    return std::nullopt;
  }

  int64_t DevicePeak() {
    std::vector<int64_t> sizes;
    std::map<Version, Held> held;
    int64_t peak = 0;
    for (size_t k = 0; k < steps_.size(); ++k) {
      for (const Version& version : MadeBy(k)) {
        if (!IsCounted(version.value)) continue;
        const Version block = BlockOf(version);
        std::optional<size_t> buffer;
        if (block != version) {
          buffer = held.at(block).buffer;
        } else if (IsRun(k)) {
          buffer = FindReusedBuffer(version, held);
        }
        if (!buffer) {
          buffer = sizes.size();
          sizes.push_back(graph_.value(version.value).bytes.count());
        }
        held[version] = {*buffer, DeathOf(version)};
      }
      std::set<size_t> live;
      for (const auto& [version, place] : held) {
        if (place.dies >= k) live.insert(place.buffer);
      }
      int64_t now = IsRun(k) ? OpAt(k).workspace.count() : 0;
      for (const size_t buffer : live) now += sizes[buffer];
      peak = std::max(peak, now);
    }
    return peak;
  }

  // Returns the last step that needs the host copy of the `out` at step k.
  size_t FindHostEnd(size_t k) {
    size_t end = k;
    for (size_t i = k + 1; i < steps_.size() && steps_[i] != steps_[k]; ++i) {
      if (steps_[i] == Step::Drop(steps_[k].tensor())) end = i;
      if (steps_[i] == Step::In(steps_[k].tensor())) end = *FindFirstReader(i);
    }
    return end;
  }

  int64_t HostPeak() {
    int64_t peak = 0;
    for (size_t k = 0; k < steps_.size(); ++k) {
      int64_t now = 0;
      for (size_t out = 0; out <= k; ++out) {
        if (steps_[out].kind != StepKind::kOut || FindHostEnd(out) < k) continue;
        now += graph_.value(steps_[out].tensor()).bytes.count();
      }
      peak = std::max(peak, now);
    }
    return peak;
  }

  int64_t CopyTime(bool is_out, ValueId value) const {
    const int64_t rate = is_out ? link_.out_bytes_per_second : link_.in_bytes_per_second;
    const __int128 scaled = __int128{graph_.value(value).bytes.count()} * 1'000'000'000;
    const __int128 time = link_.latency_ns + (scaled + rate - 1) / rate;
    return static_cast<int64_t>(std::min<__int128>(time, kLongestCopy.count()));
  }

  static int64_t Later(int64_t time, int64_t more) {
    return std::min(time + more, kLastMoment.count());
  }

  void MeasureTime(NaiveFigures* figures) const {
    int64_t now = 0;
    int64_t work = 0;
    std::map<bool, int64_t> free;        // When each direction is free; true is to the host.
    std::map<ValueId, int64_t> on_host;  // When the value's copy is complete.
    std::map<ValueId, int64_t> back;     // When the value's load ends; erased after the wait.
    const auto copy = [&](bool is_out, ValueId value, int64_t earliest) {
      const bool link = is_out || link_.duplex == Duplex::kHalf;
      free[link] = Later(std::max(free[link], earliest), CopyTime(is_out, value));
      figures->transferred += graph_.value(value).bytes.count();
      return free[link];
    };
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (IsRun(k)) {
        for (const ValueId read : OpAt(k).reads) {
          if (back.count(RootOf(read)) == 0) continue;
          now = std::max(now, back[RootOf(read)]);
          back.erase(RootOf(read));
        }
        now = Later(now, OpAt(k).cost.count());
        work += OpAt(k).cost.count();
        for (const ValueId write : OpAt(k).writes) back.erase(write);
        continue;
      }
      const ValueId value = steps_[k].tensor();
      if (steps_[k].kind == StepKind::kOut) {
        on_host[value] =
            copy(true, value, back.count(value) == 0 ? now : std::max(now, back[value]));
      } else if (steps_[k].kind == StepKind::kDrop) {
        now = std::max(now, on_host[value]);
      } else {
        back[value] = copy(false, value, std::max(now, on_host[value]));
      }
    }
    figures->makespan = now;
    figures->stall = now - work;
  }

  const JointGraph& graph_;
  const std::vector<Step>& steps_;
  const Link& link_;
  // Caches the results of Newest.
  std::map<std::pair<ValueId, size_t>, std::optional<Version>> newest_;
};

}  // namespace ckplan
