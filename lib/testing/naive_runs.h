// A second simulator of runs, for tests and fuzzers. It is as plain as possible, takes time that is
// at least quadratic in the number of runs, and shares no code with the simulator or the checker.
//
// It looks up when each version that a run makes dies, by the definition of
// lib/problem/schedule/replay.h. What is in memory at a run follows from the list of all versions.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

class NaiveRuns {
 public:
  // The runs must be a plan of the graph.
  NaiveRuns(const JointGraph& graph, const std::vector<OpId>& runs) : graph_(graph), runs_(runs) {}

  // May be called once.
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
    size_t dies_at = 0;  // The run after which it is gone; the number of runs if it is a result.
    int block = -1;      // It has none if it does not count in the peak.
  };

  template <typename T>
  static bool Lists(const std::vector<T>& list, const T& item) {
    return std::count(list.begin(), list.end(), item) > 0;
  }

  // The run at which the version that run k makes dies.
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
    return !base.maker.is_none() && !is_kept_apart;
  }

  // The newest version of the value that a run before k has made.
  const Version& NewestBefore(ValueId value, size_t k) const {
    const Version* newest = nullptr;
    for (const Version& version : versions_) {
      if (version.value == value && version.made_at < k) newest = &version;
    }
    return *newest;
  }

  // The block for a write of run k, which is not among the versions yet.
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

  // The bytes that are in memory while run k works.
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

}  // namespace ckplan
