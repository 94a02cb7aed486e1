#include "lib/planning/plan/check_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/plan/slab.h"

namespace ckplan {
namespace {

// Times saturate at kLastMoment, so that no sum overflows.
Cost Plus(Cost time, Cost more) {
  constexpr int64_t kEnd = kLastMoment.count();
  return Cost(more.count() > kEnd - time.count() ? kEnd : time.count() + more.count());
}

// One compute stream, and a link for each direction or one for both.
class Clocks {
 public:
  explicit Clocks(const Link* link) : link_(link) {}

  Cost now() const { return now_; }
  Cost waited() const { return waited_; }

  void Work(Cost time) { now_ = Plus(now_, time); }
  void WaitFor(Cost time) {
    if (time <= now_) return;
    waited_ = Plus(waited_, time - now_);
    now_ = time;
  }
  // Returns the time at which the copy is complete.
  Cost Copy(bool is_out, Bytes bytes, Cost not_before) {
    Cost& free = is_out || link_->duplex == Duplex::kHalf ? out_free_ : in_free_;
    const int64_t rate = is_out ? link_->out_bytes_per_second : link_->in_bytes_per_second;
    const __int128 scaled = __int128{bytes.count()} * 1'000'000'000;
    __int128 time = scaled / rate + (scaled % rate == 0 ? 0 : 1) + link_->latency_ns;
    if (time > kLongestCopy.count()) time = kLongestCopy.count();
    free = Plus(std::max(free, std::max(now_, not_before)), Cost(static_cast<int64_t>(time)));
    return free;
  }

 private:
  const Link* const link_;
  Cost now_;
  Cost waited_;
  Cost out_free_;
  Cost in_free_;
};

class MovesReplay {
 public:
  MovesReplay(const JointGraph& graph, const Link* link)
      : graph_(graph), link_(link), clocks_(link) {
    for (const ValueId v : graph.values().ids()) {
      const ValueId storage = graph.value(v).storage;
      if (storage != v) aliases_[storage].push_back(v);
      if (IsResult(v)) holds_result_.insert(storage);
    }
  }

  // Returns the fault of the step, if any.
  std::optional<std::string> Take(const Step& step, size_t k) {
    moves_.back.emplace_back();
    if (step.kind == StepKind::kRun) return Run(graph_.op(step.node()), k);
    if (auto fault = CheckMovable(step)) return fault;
    const ValueId v = step.tensor();
    switch (step.kind) {
      case StepKind::kOut:
        return Out(v, k);
      case StepKind::kDrop:
        return Drop(v, k);
      default:
        return In(v, k);
    }
  }

  std::optional<std::string> End() {
    if (!leaving_.empty())
      return Quoted(*leaving_.begin()) + " is copied to the host but never dropped";
    for (const Load& load : loads_) {
      if (load.read_at) continue;
      return fmt::format("step {}: {} is copied back, but no run reads it", load.step,
                         Quoted(load.value));
    }
    for (size_t copy = 0; copy < last_load_.size(); ++copy) {
      if (last_load_[copy]) moves_.on_host[copy].to = *loads_[*last_load_[copy]].read_at;
    }
    moves_.makespan = clocks_.now();
    moves_.waiting = clocks_.waited();
    return std::nullopt;
  }

  Moves Finish() && { return std::move(moves_); }

 private:
  struct Version {
    int block = 0;               // The block that holds it.
    std::optional<size_t> load;  // The load that brought it back.
  };
  struct Load {
    ValueId value;
    size_t step = 0;
    std::optional<size_t> read_at = std::nullopt;  // The first run that reads it.
  };

  bool IsResult(ValueId v) const {
    const Value& value = graph_.value(v);
    return value.is_result || value.kind == ValueKind::kArrivingGradient;
  }

  std::string Quoted(ValueId v) const { return "\"" + graph_.value(v).name + "\""; }

  std::optional<std::string> CheckMovable(const Step& step) const {
    if (link_ == nullptr) return "a transfer, but the plan has no link to the host";
    const auto count = graph_.values().size();
    if (step.index < 0 || static_cast<size_t>(step.index) >= count) {
      return fmt::format("the graph has no value number {}", step.index);
    }
    const ValueId v = step.tensor();
    const Value& value = graph_.value(v);
    const bool is_counted =
        value.kind == ValueKind::kValue || value.kind == ValueKind::kArrivingGradient;
    if (!value.alias_of.is_none()) return Quoted(v) + " has no memory of its own to move";
    if (value.producer.is_none() || !is_counted) return Quoted(v) + " counts as a constant";
    if (holds_result_.count(v) != 0) return Quoted(v) + " holds a result, which must stay";
    return std::nullopt;
  }

  std::optional<std::string> Run(const Operation& op, size_t k) {
    for (const ValueId read : op.reads) {
      const auto version = newest_.find(read);
      if (version == newest_.end()) continue;  // An input, or not computed yet.
      if (gone_.count(version->second.block) != 0) {
        return fmt::format("\"{}\" reads {}, which is on the host", op.name, Quoted(read));
      }
      if (version->second.load) {
        std::optional<size_t>& first = loads_[*version->second.load].read_at;
        if (!first) first = k;
      }
      const auto arrival = arriving_.find(graph_.value(read).storage);
      if (arrival == arriving_.end()) continue;
      clocks_.WaitFor(arrival->second);
      arriving_.erase(arrival);
    }
    clocks_.Work(op.cost);
    for (const ValueId write : op.writes) {
      if (leaving_.count(write) != 0) {
        return fmt::format("\"{}\" overwrites {} while it is copied to the host", op.name,
                           Quoted(write));
      }
      arriving_.erase(write);
      const ValueId base = graph_.value(write).alias_of;
      const auto shared = base.is_none() ? newest_.end() : newest_.find(base);
      const int block = shared == newest_.end() ? next_block_++ : shared->second.block;
      newest_[write] = {block, std::nullopt};
    }
    return std::nullopt;
  }

  bool IsInMemory(ValueId v) const {
    const auto version = newest_.find(v);
    return version != newest_.end() && gone_.count(version->second.block) == 0;
  }

  std::optional<std::string> Out(ValueId v, size_t k) {
    if (!IsInMemory(v)) return Quoted(v) + " is copied to the host but is not in memory";
    if (!leaving_.insert(v).second)
      return Quoted(v) + " is copied to the host twice without a drop";
    const auto arrival = arriving_.find(v);
    const Cost there = arrival == arriving_.end() ? Cost(0) : arrival->second;
    complete_[v] = clocks_.Copy(/*is_out=*/true, graph_.value(v).bytes, there);
    copy_of_[v] = moves_.on_host.size();
    last_load_.emplace_back();
    moves_.on_host.push_back({v, k, k});
    moves_.moved += graph_.value(v).bytes;
    return std::nullopt;
  }

  std::optional<std::string> Drop(ValueId v, size_t k) {
    if (leaving_.erase(v) == 0) return Quoted(v) + " is dropped, but no copy of it is in progress";
    clocks_.WaitFor(complete_.at(v));
    gone_.insert(newest_.at(v).block);
    moves_.on_host[copy_of_.at(v)].to = k;
    return std::nullopt;
  }

  std::optional<std::string> In(ValueId v, size_t k) {
    if (leaving_.count(v) != 0) return Quoted(v) + " is copied back while it is copied to the host";
    if (copy_of_.count(v) == 0) return Quoted(v) + " is copied back but is not on the host";
    std::vector<ValueId>& back = moves_.back.back();
    back.push_back(v);
    const auto aliases = aliases_.find(v);
    if (aliases != aliases_.end()) {
      for (const ValueId alias : aliases->second) {
        if (newest_.count(alias) != 0 && !IsInMemory(alias)) back.push_back(alias);
      }
    }
    for (const ValueId made : back) newest_[made] = {next_block_, loads_.size()};
    ++next_block_;
    last_load_[copy_of_.at(v)] = loads_.size();
    loads_.push_back({v, k});
    arriving_[v] = clocks_.Copy(/*is_out=*/false, graph_.value(v).bytes, complete_.at(v));
    moves_.moved += graph_.value(v).bytes;
    return std::nullopt;
  }

  const JointGraph& graph_;
  const Link* const link_;
  Clocks clocks_;
  Moves moves_;
  std::map<ValueId, std::vector<ValueId>> aliases_;  // By storage.
  std::set<ValueId> holds_result_;                   // Storages.
  std::map<ValueId, Version> newest_;
  std::set<int> gone_;  // Blocks that were dropped.
  int next_block_ = 0;
  std::set<ValueId> leaving_;          // Values between `out` and `drop`.
  std::map<ValueId, Cost> complete_;   // When each copy to the host is complete.
  std::map<ValueId, Cost> arriving_;   // The same for copies back, until a run waits.
  std::map<ValueId, size_t> copy_of_;  // Index into moves_.on_host.
  std::vector<Load> loads_;
  std::vector<std::optional<size_t>> last_load_;  // By copy in moves_.on_host.
};

}  // namespace

Result<Moves> FollowMoves(const JointGraph& graph, const Schedule& schedule, const Link* link) {
  MovesReplay replay(graph, link);
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    PollStop();
    if (const auto fault = replay.Take(schedule.steps[k], k)) {
      return MakeError(ErrorCode::kCheckFailed, fmt::format("step {}: {}", k, *fault));
    }
  }
  if (const auto fault = replay.End()) return MakeError(ErrorCode::kCheckFailed, *fault);
  return std::move(replay).Finish();
}

Result<HostMemory> LayOutOnHost(const JointGraph& graph, const std::vector<OnHost>& copies,
                                const std::vector<Bytes>& offsets, int64_t alignment) {
  if (offsets.size() != copies.size()) {
    return MakeError(ErrorCode::kCheckFailed, fmt::format("the host has {} offsets for {} copies",
                                                          offsets.size(), copies.size()));
  }
  Slab slab(&offsets, alignment);
  std::set<std::pair<size_t, int>> there;  // Each copy's last step and block.
  for (const OnHost& copy : copies) {
    while (!there.empty() && there.begin()->first < copy.from) {
      slab.Release(there.begin()->second);
      there.erase(there.begin());
    }
    const Value& value = graph.value(copy.value);
    const int block = slab.Allocate(LiveBuffer::Tensor(copy.value, value.bytes),
                                    "\"" + value.name + "\" on the host");
    there.emplace(copy.to, block);
    if (slab.fault()) {
      return MakeError(ErrorCode::kCheckFailed,
                       fmt::format("step {}: {}", copy.from, *slab.fault()));
    }
  }
  return HostMemory{slab.highest(), slab.end()};
}

}  // namespace ckplan
