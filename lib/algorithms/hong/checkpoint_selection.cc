#include "lib/algorithms/hong/checkpoint_selection.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace ckplan {
namespace {

// sums[i] = d_0 + ... + d_{i-1}.
std::vector<Bytes> PrefixSums(const LayerList& list) {
  std::vector<Bytes> sums = {Bytes(0)};
  for (const Bytes size : list.sizes) sums.push_back(sums.back() + size);
  return sums;
}

// The checkpoints from the first on, each followed by the one that `next` names.
std::vector<size_t> TraceCheckpoints(const LayerList& list, const std::vector<size_t>& next) {
  std::vector<size_t> positions;
  for (size_t c = 0;; c = next[c]) {
    positions.push_back(list.candidates[c]);
    if (c + 1 == list.candidates.size()) return positions;
  }
}

// The checkpoints of least memory with no segment above `limit`, or nothing (Eq. 7 and 8). A queue
// holds the candidates within reach in order of position, their memory rising.
std::optional<std::vector<size_t>> MinCheckpoints(const LayerList& list,
                                                  const std::vector<Bytes>& sums, Bytes limit) {
  const std::vector<size_t>& candidates = list.candidates;
  std::vector<Bytes> memory(candidates.size());
  std::vector<size_t> before(candidates.size());
  std::deque<size_t> queue;
  memory[0] = list.sizes[candidates[0]];
  queue.push_back(0);
  for (size_t c = 1; c < candidates.size(); ++c) {
    const auto segment = [&](size_t from) {
      return sums[candidates[c]] - sums[candidates[from] + 1];
    };
    while (!queue.empty() && segment(queue.front()) > limit) queue.pop_front();
    if (queue.empty()) return std::nullopt;
    before[c] = queue.front();
    memory[c] = memory[before[c]] + list.sizes[candidates[c]];
    while (!queue.empty() && memory[queue.back()] >= memory[c]) queue.pop_back();
    queue.push_back(c);
  }
  std::vector<size_t> positions;
  for (size_t c = candidates.size() - 1;; c = before[c]) {
    positions.push_back(candidates[c]);
    if (c == 0) break;
  }
  std::reverse(positions.begin(), positions.end());
  return positions;
}

struct StaticParts {
  Bytes checkpoints;
  Bytes segment;  // The largest.
};

StaticParts PartsOfStatic(const LayerList& list, const std::vector<Bytes>& sums,
                          const std::vector<size_t>& checkpoints) {
  StaticParts parts;
  for (size_t k = 0; k < checkpoints.size(); ++k) {
    parts.checkpoints += list.sizes[checkpoints[k]];
    if (k == 0) continue;
    parts.segment = std::max(parts.segment, sums[checkpoints[k]] - sums[checkpoints[k - 1] + 1]);
  }
  return parts;
}

// The maximum of d_k over i <= k < j while i goes down from the end: a stack of the positions whose
// d is larger than all between i and them.
class RecordMaxima {
 public:
  explicit RecordMaxima(const std::vector<Bytes>& sizes) : sizes_(sizes) {}

  void MoveTo(size_t i) {
    while (!stack_.empty() && sizes_[stack_.back()] <= sizes_[i]) stack_.pop_back();
    stack_.push_back(i);
  }
  // The last record before j is the maximum of [i, j).
  Bytes Before(size_t j) const {
    const auto it = std::partition_point(stack_.begin(), stack_.end(),
                                         [&](size_t position) { return position >= j; });
    return sizes_[*it];
  }

 private:
  const std::vector<Bytes>& sizes_;
  std::vector<size_t> stack_;  // From bottom to top, positions and sizes descend.
};

}  // namespace

Bytes StaticObjective(const LayerList& list, const std::vector<size_t>& checkpoints) {
  const StaticParts parts = PartsOfStatic(list, PrefixSums(list), checkpoints);
  return parts.checkpoints + parts.segment;
}

Bytes DynamicObjective(const LayerList& list, const std::vector<size_t>& checkpoints) {
  Bytes kept = list.sizes[checkpoints.front()];
  Bytes highest = kept;  // A list of one element.
  for (size_t k = 1; k < checkpoints.size(); ++k) {
    kept += list.sizes[checkpoints[k]];
    Bytes segment;
    Bytes largest = list.sizes[checkpoints[k - 1]];
    for (size_t i = checkpoints[k - 1] + 1; i < checkpoints[k]; ++i) {
      segment += list.sizes[i];
      largest = std::max(largest, list.sizes[i]);
    }
    highest = std::max(highest, kept + segment + largest);
  }
  return highest;
}

Result<Checkpoints> SelectStatic(const LayerList& list, std::stop_token stop) {
  const std::vector<Bytes> sums = PrefixSums(list);
  Checkpoints best{{}, Bytes::Max()};
  for (Bytes limit = sums.back(); limit >= Bytes(0);) {
    if (stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
    auto positions = MinCheckpoints(list, sums, limit);
    if (!positions) break;
    const StaticParts parts = PartsOfStatic(list, sums, *positions);
    if (parts.checkpoints + parts.segment < best.objective) {
      best = {std::move(*positions), parts.checkpoints + parts.segment};
    }
    // Smaller limits only need more checkpoints; a limit that changes nothing is passed over.
    if (parts.checkpoints >= best.objective) break;
    limit = parts.segment - Bytes(1);
  }
  return best;
}

Result<Checkpoints> SelectDynamic(const LayerList& list, std::stop_token stop) {
  const std::vector<Bytes> sums = PrefixSums(list);
  const std::vector<size_t>& candidates = list.candidates;
  const size_t last = candidates.size() - 1;
  std::vector<Bytes> memory(candidates.size(), Bytes::Max());  // M(i) of Eq. 13.
  std::vector<size_t> next(candidates.size(), last);
  memory[last] = list.sizes[candidates[last]];
  for (size_t c = last; c-- > 0;) {
    if (stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
    const size_t i = candidates[c];
    Bytes largest = list.sizes[i];
    for (size_t n = c + 1; n <= last; ++n) {
      const size_t j = candidates[n];
      for (size_t k = candidates[n - 1] + 1; k < j; ++k) {
        largest = std::max(largest, list.sizes[k]);
      }
      const Bytes u = sums[j + 1] - sums[i + 1] + largest;  // U(i, j) = s(i, j) + d_j
      const Bytes value = list.sizes[i] + std::max(memory[n], u);
      if (value < memory[c]) {
        memory[c] = value;
        next[c] = n;
      }
      largest = std::max(largest, list.sizes[j]);
    }
  }
  return Checkpoints{TraceCheckpoints(list, next), memory[0]};
}

Checkpoints SelectDynamicLinear(const LayerList& list) {
  const std::vector<Bytes> sums = PrefixSums(list);
  const std::vector<size_t>& candidates = list.candidates;
  const size_t last = candidates.size() - 1;
  std::vector<Bytes> memory(candidates.size());  // M(i) of Eq. 13.
  std::vector<size_t> next(candidates.size(), last);
  memory[last] = list.sizes[candidates[last]];
  RecordMaxima records(list.sizes);
  // Q, its beginning at the back of the vector: positions rise and M falls towards the front.
  std::vector<size_t> queue = {last};
  size_t at = 0;  // Where j* stands in the queue.
  size_t seen = candidates[last];
  for (size_t c = last; c-- > 0;) {
    const size_t i = candidates[c];
    while (seen > i) records.MoveTo(--seen);
    const auto u = [&](size_t n) {
      const size_t j = candidates[n];
      return sums[j + 1] - sums[i + 1] + records.Before(j);
    };
    while (u(queue[at]) >= memory[queue[at]] && at + 1 < queue.size()) ++at;
    const auto value = [&](size_t place) {
      return list.sizes[i] + std::max(memory[queue[place]], u(queue[place]));
    };
    // "j + 1" of line 13 is the next element of Q, not the next index.
    if (at > 0 && value(at - 1) <= value(at)) --at;
    memory[c] = value(at);
    next[c] = queue[at];
    while (!queue.empty() && memory[queue.back()] >= memory[c]) queue.pop_back();
    // j* may have left Q: go on from its nearest survivor.
    at = queue.empty() ? 0 : std::min(at, queue.size() - 1);
    queue.push_back(c);
  }
  return {TraceCheckpoints(list, next), memory[0]};
}

}  // namespace ckplan
