#include "lib/algorithms/kusumoto/lower_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace ckplan {
namespace {

void Flip(uint64_t* words, NodeId v) {
  const auto i = static_cast<size_t>(v.index());
  words[i / 64] ^= uint64_t{1} << (i % 64);
}

// A fixed random number per node; a set's hash is the exclusive or of its members' numbers, so
// that the hash of a cover follows from the set's own in one operation.
uint64_t NodeHash(NodeId v) {
  uint64_t z = (static_cast<uint64_t>(v.index()) + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// Lists every lower set exactly once, depth-first. A frame holds the nodes that may be added to the
// current set; its i-th child adds the i-th of them and gives up those before it for good, so each
// set is reached by one path alone. O(width) per set.
class Enumerator {
 public:
  Enumerator(const VertexGraph& graph, size_t words_per_set, int64_t max_count)
      : graph_(graph), current_(words_per_set), max_count_(max_count), missing_(graph.size()) {
    for (const NodeId v : graph.ids()) {
      missing_[v] = static_cast<int32_t>(graph.predecessors(v).size());
      if (missing_[v] == 0) candidates_.push_back(v);
    }
  }

  // False when there are more than `max_count`.
  bool Run() {
    std::vector<Frame> stack = {{NodeId(), 0, candidates_.size()}};
    Emit();
    while (!stack.empty()) {
      const Frame frame = stack.back();
      if (frame.next == frame.end) {
        stack.pop_back();
        if (!frame.added.is_none()) Remove(frame.added);
        candidates_.resize(stack.empty() ? 0 : stack.back().end);
        continue;
      }
      ++stack.back().next;
      const NodeId v = candidates_[frame.next];
      Add(v);
      if (!Emit()) return false;
      const size_t begin = candidates_.size();
      for (size_t i = frame.next + 1; i < frame.end; ++i) candidates_.push_back(candidates_[i]);
      for (const NodeId w : graph_.successors(v)) {
        if (missing_[w] == 0) candidates_.push_back(w);
      }
      stack.push_back({v, begin, candidates_.size()});
    }
    return true;
  }

  std::vector<uint64_t> TakeBits() { return std::move(bits_); }

 private:
  struct Frame {
    NodeId added;  // To be removed when the frame ends.
    size_t next;   // Index of the candidate to try next.
    size_t end;    // One past the frame's last candidate.
  };

  void Add(NodeId v) {
    Flip(current_.data(), v);
    for (const NodeId w : graph_.successors(v)) --missing_[w];
  }
  void Remove(NodeId v) {
    Flip(current_.data(), v);
    for (const NodeId w : graph_.successors(v)) ++missing_[w];
  }
  bool Emit() {
    if (++count_ > max_count_) return false;
    bits_.insert(bits_.end(), current_.begin(), current_.end());
    return true;
  }

  const VertexGraph& graph_;
  std::vector<uint64_t> current_;
  const int64_t max_count_;
  IdVector<NodeId, int32_t> missing_;  // Predecessors that are not in the current set.
  std::vector<NodeId> candidates_;     // Those of all frames, one frame after the other.
  std::vector<uint64_t> bits_;
  int64_t count_ = 0;
};

// The numbers of the sets by ascending memory, then by ascending size, so that nodes without memory
// do not bring a set before its subsets. Equal ones keep their order.
std::vector<size_t> OrderByMemory(const VertexGraph& graph, const std::vector<uint64_t>& bits,
                                  size_t word_count) {
  const size_t set_count = bits.size() / word_count;
  std::vector<std::pair<Bytes, int64_t>> keys(set_count);
  for (size_t i = 0; i < set_count; ++i) {
    for (size_t w = 0; w < word_count; ++w) {
      for (uint64_t word = bits[i * word_count + w]; word != 0; word &= word - 1) {
        keys[i].first += graph.memory(NodeId(w * 64 + static_cast<size_t>(std::countr_zero(word))));
        ++keys[i].second;
      }
    }
  }
  std::vector<size_t> order(set_count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

std::vector<uint64_t> Reorder(const std::vector<uint64_t>& bits, size_t word_count,
                              const std::vector<size_t>& order) {
  std::vector<uint64_t> sorted;
  sorted.reserve(bits.size());
  for (const size_t i : order) {
    const auto begin = bits.begin() + static_cast<std::ptrdiff_t>(i * word_count);
    sorted.insert(sorted.end(), begin, begin + static_cast<std::ptrdiff_t>(word_count));
  }
  return sorted;
}

}  // namespace

Result<LowerSetFamily> LowerSetFamily::All(const VertexGraph& graph, int64_t max_count) {
  LowerSetFamily family(graph.size());
  Enumerator enumerator(graph, family.words_per_set_, max_count);
  if (!enumerator.Run()) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("the graph has more than {} lower sets", max_count));
  }
  const std::vector<uint64_t> bits = enumerator.TakeBits();
  const size_t word_count = family.words_per_set_;
  family.bits_ = Reorder(bits, word_count, OrderByMemory(graph, bits, word_count));
  family.ComputeFacts(graph);
  family.LinkCovers(graph);
  return family;
}

LowerSetFamily LowerSetFamily::Closures(const VertexGraph& graph) {
  LowerSetFamily family(graph.size());
  const size_t word_count = family.words_per_set_;
  // Row 0 is the empty set, row v + 1 the closure of v, the last one V.
  std::vector<uint64_t> rows((graph.size() + 2) * word_count);
  const auto row = [&](size_t i) { return rows.data() + i * word_count; };
  size_t sinks = 0;
  for (const NodeId v : graph.ids()) {
    const auto i = static_cast<size_t>(v.index());
    for (const NodeId p : graph.predecessors(v)) {
      const uint64_t* from = row(static_cast<size_t>(p.index()) + 1);
      for (size_t w = 0; w < word_count; ++w) row(i + 1)[w] |= from[w];
    }
    Flip(row(i + 1), v);
    Flip(row(graph.size() + 1), v);
    if (graph.successors(v).empty()) ++sinks;
  }
  if (sinks <= 1) rows.resize(rows.size() - word_count);  // V is the closure of the one sink.
  const std::vector<size_t> order = OrderByMemory(graph, rows, word_count);
  family.bits_ = Reorder(rows, word_count, order);
  family.closure_of_.resize(graph.size());
  for (size_t set = 0; set < order.size(); ++set) {
    if (order[set] == 0 || order[set] > graph.size()) continue;
    family.closure_of_[NodeId(order[set] - 1)] = static_cast<int32_t>(set);
  }
  family.ComputeFacts(graph);
  return family;
}

void LowerSetFamily::ComputeFacts(const VertexGraph& graph) {
  const size_t set_count = bits_.size() / words_per_set_;
  // The number of the last set whose terms (iii) and (iv) counted a node.
  IdVector<NodeId, int32_t> third_for(graph.size(), -1);
  IdVector<NodeId, int32_t> fourth_for(graph.size(), -1);
  boundary_starts_.push_back(0);
  for (size_t i = 0; i < set_count; ++i) {
    const auto set = static_cast<int32_t>(i);
    Facts facts;
    const auto count_neighbours = [&](NodeId successor) {
      if (std::exchange(third_for[successor], set) == set) return;
      facts.neighbours += graph.memory(successor);
      for (const NodeId p : graph.predecessors(successor)) {
        if (contains(set, p) || std::exchange(fourth_for[p], set) == set) continue;
        facts.neighbours += graph.memory(p);
      }
    };
    ForEachMember(set, [&](NodeId v) {
      facts.memory += graph.memory(v);
      facts.time += graph.time(v);
      bool is_boundary = false;
      for (const NodeId successor : graph.successors(v)) {
        if (contains(set, successor)) continue;
        is_boundary = true;
        count_neighbours(successor);
      }
      if (!is_boundary) return;
      facts.boundary_memory += graph.memory(v);
      facts.boundary_time += graph.time(v);
      const auto bit = static_cast<uint32_t>(v.index());
      boundary_.push_back({bit / 64, uint64_t{1} << (bit % 64), graph.memory(v), graph.time(v)});
    });
    facts_.push_back(facts);
    memories_.push_back(facts.memory);
    boundary_starts_.push_back(static_cast<uint32_t>(boundary_.size()));
  }
}

// Connects each set with those that lack one of its maximal nodes.
void LowerSetFamily::LinkCovers(const VertexGraph& graph) {
  const size_t set_count = facts_.size();
  std::vector<uint64_t> hashes(set_count);
  std::unordered_multimap<uint64_t, int32_t> by_hash;
  by_hash.reserve(set_count);
  for (size_t i = 0; i < set_count; ++i) {
    const auto set = static_cast<int32_t>(i);
    ForEachMember(set, [&](NodeId v) { hashes[i] ^= NodeHash(v); });
    by_hash.emplace(hashes[i], set);
  }
  std::vector<uint64_t> without(words_per_set_);
  cover_starts_.push_back(0);
  for (size_t i = 0; i < set_count; ++i) {
    const auto set = static_cast<int32_t>(i);
    ForEachMember(set, [&](NodeId v) {
      const auto successors = graph.successors(v);
      const bool is_maximal = std::none_of(successors.begin(), successors.end(),
                                           [&](NodeId w) { return contains(set, w); });
      if (!is_maximal) return;
      std::copy_n(words(set), words_per_set_, without.data());
      Flip(without.data(), v);
      const auto [first, last] = by_hash.equal_range(hashes[i] ^ NodeHash(v));
      const auto found = std::find_if(first, last, [&](const auto& entry) {
        return std::equal(without.begin(), without.end(), words(entry.second));
      });
      CKPLAN_CHECK(found != last, "a lower set without a maximal node is a lower set");
      covers_.push_back(found->second);
    });
    cover_starts_.push_back(static_cast<uint32_t>(covers_.size()));
  }
}

}  // namespace ckplan
