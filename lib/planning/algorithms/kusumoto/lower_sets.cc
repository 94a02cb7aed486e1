#include "lib/planning/algorithms/kusumoto/lower_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "lib/planning/algorithms/kusumoto/set_neighbours.h"

namespace ckplan {

bool WorkMeter::is_over() const { return limits_.stop.stop_requested() || exceeds_limit(); }

Result<Done> WorkMeter::Check() const {
  if (limits_.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  if (exceeds_limit()) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("searching {} lower sets takes more than {} transitions",
                                 lower_sets_, limits_.max_transitions));
  }
  return Done{};
}

namespace {

constexpr int64_t kSetsPerPoll = 256;
// A limit on the boundary words visited for pairs of closures. Real models stay far below it,
// because their boundaries are small.
constexpr int64_t kMaxPairWork = 1'000'000'000;

Result<Done> Poll(const DpLimits& limits) {
  if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  return Done{};
}

// Lists every lower set exactly once, depth first. A frame holds the nodes that can be added to the
// current set; its i-th child adds the i-th of them and excludes the earlier ones from then on, so
// a single path leads to each set. O(width) per set.
class Enumerator {
 public:
  Enumerator(const VertexGraph& graph, const DpLimits& limits)
      : graph_(graph),
        limits_(limits),
        current_(WordCount(graph.size())),
        additions_(WordCount(graph.size())),
        missing_(graph.size()) {
    for (const NodeId v : graph.ids()) {
      missing_[v] = static_cast<int32_t>(graph.predecessors(v).size());
      if (missing_[v] == 0) Flip(additions_.data(), v);
    }
  }

  // Calls emit(words, additions) for each set, both as bits of nodes, until `emit` returns false.
  template <typename Emit>
  Result<Done> Run(Emit emit) {
    candidates_.clear();
    for (const NodeId v : graph_.ids()) {
      if (missing_[v] == 0) candidates_.push_back(v);
    }
    std::vector<Frame> stack = {{NodeId(), 0, candidates_.size()}};
    bool wants_more = emit(current_, additions_);
    for (int64_t step = 0; !stack.empty(); ++step) {
      if (step % kSetsPerPoll == 0) CKPLAN_RETURN_IF_ERROR(Poll(limits_));
      const Frame frame = stack.back();
      if (frame.next == frame.end || !wants_more) {
        stack.pop_back();
        if (!frame.added.is_none()) Remove(frame.added);
        candidates_.resize(stack.empty() ? 0 : stack.back().end);
        continue;
      }
      ++stack.back().next;
      const NodeId v = candidates_[frame.next];
      Add(v);
      wants_more = emit(current_, additions_);
      const size_t begin = candidates_.size();
      for (size_t i = frame.next + 1; i < frame.end; ++i) candidates_.push_back(candidates_[i]);
      for (const NodeId w : graph_.successors(v)) {
        if (missing_[w] == 0) candidates_.push_back(w);
      }
      stack.push_back({v, begin, candidates_.size()});
    }
    return Done{};
  }

 private:
  struct Frame {
    NodeId added;  // The node to remove when the frame ends.
    size_t next;   // The index of the candidate to try next.
    size_t end;    // One past the frame's last candidate.
  };

  void Add(NodeId v) {
    Flip(current_.data(), v);
    Flip(additions_.data(), v);
    for (const NodeId w : graph_.successors(v)) {
      if (--missing_[w] == 0) Flip(additions_.data(), w);
    }
  }
  void Remove(NodeId v) {
    Flip(current_.data(), v);
    Flip(additions_.data(), v);
    for (const NodeId w : graph_.successors(v)) {
      if (missing_[w]++ == 0) Flip(additions_.data(), w);
    }
  }

  const VertexGraph& graph_;
  const DpLimits& limits_;
  std::vector<uint64_t> current_;
  std::vector<uint64_t> additions_;    // The nodes outside the current set whose predecessors are
                                       // all in it.
  IdVector<NodeId, int32_t> missing_;  // How many predecessors are outside the current set.
  std::vector<NodeId> candidates_;     // The candidates of all frames, frame by frame.
};

Result<int64_t> CountUpTo(int64_t max_count, Enumerator* enumerator) {
  int64_t count = 0;
  CKPLAN_RETURN_IF_ERROR(
      enumerator->Run([&](const std::vector<uint64_t>&, const std::vector<uint64_t>&) {
        return ++count <= max_count;
      }));
  return count;
}

// Returns, for each node, which of up to 64 chosen nodes are reachable from it; a node reaches
// itself.
IdVector<NodeId, uint64_t> FindReachable(const VertexGraph& graph, std::span<const NodeId> chosen) {
  IdVector<NodeId, uint64_t> reached(graph.size());
  for (size_t i = 0; i < chosen.size(); ++i) reached[chosen[i]] |= uint64_t{1} << i;
  for (size_t i = graph.size(); i-- > 0;) {
    for (const NodeId p : graph.predecessors(NodeId(i))) reached[p] |= reached[NodeId(i)];
  }
  return reached;
}

using BitSquare = std::array<uint64_t, kWordBits>;  // Row i, column k: bit k of the i-th word.

// Swaps rows and columns by swapping half-size blocks, then recursing into them.
void Transpose(BitSquare* square) {
  uint64_t mask = 0x00000000ffffffffU;
  for (size_t half = kWordBits / 2; half > 0; half /= 2, mask ^= mask << half) {
    for (size_t i = 0; i < kWordBits; i = (i + half + 1) & ~half) {
      const uint64_t swapped = (((*square)[i] >> half) ^ (*square)[i + half]) & mask;
      (*square)[i] ^= swapped << half;
      (*square)[i + half] ^= swapped;
    }
  }
}

// Returns one of each `stride` consecutive nodes: the one after which the least memory is still to
// be read.
std::vector<NodeId> ChooseNodes(const VertexGraph& graph, int64_t stride) {
  std::vector<NodeId> chosen;
  IdVector<NodeId, Bytes> read_last(graph.size());  // By node: bytes that no later node reads.
  Bytes alive;
  Bytes least;
  for (const NodeId v : graph.ids()) {
    const NodeId last_reader = graph.successors(v).empty() ? v : graph.successors(v).back();
    alive += graph.memory(v);
    read_last[last_reader] += graph.memory(v);
    alive -= read_last[v];
    if (v.index() % stride == 0) {
      chosen.push_back(v);
      least = alive;
    } else if (alive < least) {
      chosen.back() = v;
      least = alive;
    }
  }
  return chosen;
}

}  // namespace

// The sums over the nodes of each word, and the nodes to visit if the whole word is in a set.
struct LowerSetFamily::Words {
  explicit Words(const VertexGraph& graph) : rows(WordCount(graph.size())) {
    for (const NodeId v : graph.ids()) {
      Row& row = rows[WordOf(v)];
      row.memory += graph.memory(v);
      row.time += graph.time(v);
      row.all |= BitOf(v);
      row.read_outside |= BitOf(v);
      const auto successors = graph.successors(v);
      const auto is_inside = [&](NodeId w) { return WordOf(w) == WordOf(v); };
      if (std::all_of(successors.begin(), successors.end(), is_inside)) {
        row.read_outside ^= BitOf(v);
      }
    }
  }

  // Adds up memory, time and size of the set that these words represent.
  void Sum(const VertexGraph& graph, const uint64_t* words, Facts* facts) const {
    for (size_t w = 0; w < rows.size(); ++w) {
      facts->size += std::popcount(words[w]);
      if (words[w] == rows[w].all) {
        facts->memory += rows[w].memory;
        facts->time += rows[w].time;
        continue;
      }
      for (uint64_t word = words[w]; word != 0; word &= word - 1) {
        facts->memory += graph.memory(NodeAt(w, word));
        facts->time += graph.time(NodeAt(w, word));
      }
    }
  }

  struct Row {
    Bytes memory;
    Cost time;
    uint64_t all = 0;
    uint64_t read_outside = 0;  // The nodes with a successor in another word.
  };
  std::vector<Row> rows;
};

LowerSetFamily::LowerSetFamily(const VertexGraph& graph) : words_per_set_(WordCount(graph.size())) {
  for (const NodeId v : graph.ids()) {
    node_memories_.push_back(graph.memory(v));
    node_times_.push_back(graph.time(v));
  }
}

Result<LowerSetFamily> LowerSetFamily::All(const VertexGraph& graph, int64_t max_count,
                                           const DpLimits& limits) {
  LowerSetFamily family(graph);
  Enumerator enumerator(graph, limits);
  CKPLAN_ASSIGN_OR_RETURN(const int64_t count, CountUpTo(max_count, &enumerator));
  if (count > max_count) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("the graph has more than {} lower sets", max_count));
  }
  std::vector<uint64_t> bits;
  bits.reserve(static_cast<size_t>(count) * family.words_per_set_);
  std::vector<NodeId> additions;
  std::vector<size_t> addition_starts = {0};
  CKPLAN_RETURN_IF_ERROR(enumerator.Run(
      [&](const std::vector<uint64_t>& words, const std::vector<uint64_t>& additions_of_set) {
        bits.insert(bits.end(), words.begin(), words.end());
        for (size_t w = 0; w < additions_of_set.size(); ++w) {
          for (uint64_t word = additions_of_set[w]; word != 0; word &= word - 1) {
            additions.push_back(NodeAt(w, word));
          }
        }
        addition_starts.push_back(additions.size());
        return true;
      }));
  family.addition_starts_.push_back(0);
  for (const size_t i : family.SortByMemory(graph, std::move(bits))) {
    family.additions_.insert(
        family.additions_.end(),
        additions.begin() + static_cast<std::ptrdiff_t>(addition_starts[i]),
        additions.begin() + static_cast<std::ptrdiff_t>(addition_starts[i + 1]));
    family.addition_starts_.push_back(family.additions_.size());
  }
  constexpr int64_t kAnyWork = std::numeric_limits<int64_t>::max();
  CKPLAN_RETURN_IF_ERROR(family.ComputeFacts(graph, kAnyWork, limits));
  family.FindSetsWithEachNode(graph.size());
  return family;
}

Result<LowerSetFamily> LowerSetFamily::Closures(const VertexGraph& graph, int64_t max_closures,
                                                const DpLimits& limits) {
  int64_t count = std::min(max_closures, static_cast<int64_t>(graph.size()));
  while (true) {
    CKPLAN_ASSIGN_OR_RETURN(std::optional<LowerSetFamily> family,
                            SomeClosures(graph, std::max<int64_t>(1, count), limits));
    if (family) return *std::move(family);
    count /= 2;
  }
}

// Returns nothing if visiting all pairs of these closures takes too long.
Result<std::optional<LowerSetFamily>> LowerSetFamily::SomeClosures(const VertexGraph& graph,
                                                                   int64_t max_closures,
                                                                   const DpLimits& limits) {
  LowerSetFamily family(graph);
  const auto node_count = static_cast<int64_t>(graph.size());
  family.stride_ = std::max<int64_t>(1, (node_count + max_closures - 1) / max_closures);
  const std::vector<NodeId> chosen = ChooseNodes(graph, family.stride_);
  const size_t word_count = family.words_per_set_;
  // Row 0 is the empty set, row i + 1 the closure of the i-th chosen node, and the last row V.
  std::vector<uint64_t> bits((chosen.size() + 2) * word_count);
  for (size_t first = 0; first < chosen.size(); first += kWordBits) {
    CKPLAN_RETURN_IF_ERROR(Poll(limits));
    const size_t batch = std::min(kWordBits, chosen.size() - first);
    const auto reached = FindReachable(graph, std::span(chosen).subspan(first, batch));
    for (size_t w = 0; w < word_count; ++w) {
      BitSquare square{};
      const size_t nodes = std::min(kWordBits, graph.size() - w * kWordBits);
      for (size_t i = 0; i < nodes; ++i) square[i] = reached[NodeId(w * kWordBits + i)];
      Transpose(&square);
      for (size_t i = 0; i < batch; ++i) {
        bits[(first + i + 1) * word_count + w] = square[i];
      }
    }
  }
  uint64_t* all_nodes = bits.data() + (chosen.size() + 1) * word_count;
  for (const NodeId v : graph.ids()) Flip(all_nodes, v);
  // V is the closure of the last node if that is the only sink.
  const bool is_closure =
      !chosen.empty() && std::equal(all_nodes, all_nodes + word_count, all_nodes - word_count);
  if (is_closure) bits.resize(bits.size() - word_count);
  for (const size_t row : family.SortByMemory(graph, std::move(bits))) {
    const bool has_node = row > 0 && row <= chosen.size();
    family.closed_nodes_.push_back(has_node ? chosen[row - 1] : NodeId());
  }
  CKPLAN_ASSIGN_OR_RETURN(const bool is_complete, family.ComputeFacts(graph, kMaxPairWork, limits));
  return is_complete ? std::optional(std::move(family)) : std::nullopt;
}

// Sorts the sets by memory, then by size, so that nodes without memory don't put a set before its
// subsets; equal sets keep their order. Stores these facts, and returns the sets' earlier numbers.
std::vector<size_t> LowerSetFamily::SortByMemory(const VertexGraph& graph,
                                                 std::vector<uint64_t> bits) {
  const Words known(graph);
  const size_t set_count = bits.size() / words_per_set_;
  std::vector<Facts> facts(set_count);
  for (size_t i = 0; i < set_count; ++i) {
    known.Sum(graph, bits.data() + i * words_per_set_, &facts[i]);
  }
  std::vector<size_t> order(set_count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(facts[a].memory, facts[a].size) < std::pair(facts[b].memory, facts[b].size);
  });
  std::vector<uint64_t> sorted_bits(bits.size());
  for (size_t i = 0; i < set_count; ++i) {
    facts_.push_back(facts[order[i]]);
    std::copy_n(bits.data() + order[i] * words_per_set_, words_per_set_,
                sorted_bits.data() + i * words_per_set_);
  }
  bits_ = std::make_shared<const std::vector<uint64_t>>(std::move(sorted_bits));
  return order;
}

LowerSetFamily LowerSetFamily::WithTimes(const VertexGraph& graph) const {
  LowerSetFamily other = *this;
  const Words known(graph);
  for (const NodeId v : graph.ids()) other.node_times_[v] = graph.time(v);
  for (BoundaryWord& word : other.boundary_) {
    word.time = Cost(0);
    for (uint64_t bits = word.bits; bits != 0; bits &= bits - 1) {
      word.time += graph.time(NodeAt(word.word, bits));
    }
  }
  for (int32_t set = 0; set < size(); ++set) {
    const auto i = static_cast<size_t>(set);
    Facts sums;
    known.Sum(graph, words(set), &sums);
    Facts& facts = other.facts_[i];
    facts.time = sums.time;
    facts.boundary_time = Cost(0);
    for (uint32_t k = boundary_starts_[i]; k < boundary_starts_[i + 1]; ++k) {
      facts.boundary_time += other.boundary_[k].time;
    }
  }
  return other;
}

// Adds `v` to the last set's boundary. Nodes must arrive in ascending order.
void LowerSetFamily::AddToBoundary(NodeId v) {
  const auto index = static_cast<uint32_t>(WordOf(v));
  if (boundary_.size() == boundary_starts_.back() || boundary_.back().word != index) {
    boundary_.push_back({index, 0, Bytes(0), Cost(0)});
  }
  BoundaryWord& word = boundary_.back();
  word.bits |= BitOf(v);
  word.memory += node_memories_[v];
  word.time += node_times_[v];
}

// Fills in the boundary and the neighbours of each set. Returns false if calling BoundaryWithin for
// all pairs of sets would visit more than `max_pair_work` words.
Result<bool> LowerSetFamily::ComputeFacts(const VertexGraph& graph, int64_t max_pair_work,
                                          const DpLimits& limits) {
  const Words known(graph);
  SetNeighbours neighbours(graph);
  boundary_starts_.push_back(0);
  for (int32_t set = 0; set < size(); ++set) {
    if (set % kSetsPerPoll == 0) CKPLAN_RETURN_IF_ERROR(Poll(limits));
    Facts& facts = facts_[static_cast<size_t>(set)];
    neighbours.Begin(words(set));
    const auto add_if_boundary = [&](NodeId v) {
      if (!neighbours.Visit(v)) return;
      facts.boundary_memory += graph.memory(v);
      facts.boundary_time += graph.time(v);
      AddToBoundary(v);
    };
    for (size_t w = 0; w < words_per_set_; ++w) {
      const uint64_t members = words(set)[w];
      // If all nodes of the word are members, only those with readers in other words can be in the
      // boundary.
      uint64_t word = members == known.rows[w].all ? known.rows[w].read_outside : members;
      for (; word != 0; word &= word - 1) add_if_boundary(NodeAt(w, word));
    }
    if (static_cast<int64_t>(boundary_.size()) > max_pair_work / size()) return false;
    facts.neighbours = neighbours.memory();
    boundary_starts_.push_back(static_cast<uint32_t>(boundary_.size()));
    memories_.push_back(facts.memory);
    boundary_memories_.push_back(facts.boundary_memory);
    sizes_.push_back(facts.size);
  }
  return true;
}

// Transposes the bits in squares of 64 by 64.
void LowerSetFamily::FindSetsWithEachNode(size_t node_count) {
  const auto set_count = static_cast<size_t>(size());
  const size_t column_words = WordCount(set_count);
  sets_with_.resize(node_count * column_words);
  for (size_t column = 0; column < column_words; ++column) {
    const size_t first = column * kWordBits;
    const size_t sets = std::min(kWordBits, set_count - first);
    for (size_t w = 0; w < words_per_set_; ++w) {
      BitSquare square{};
      for (size_t i = 0; i < sets; ++i) square[i] = words(static_cast<int32_t>(first + i))[w];
      Transpose(&square);
      const size_t nodes = std::min(kWordBits, node_count - w * kWordBits);
      for (size_t i = 0; i < nodes; ++i) {
        sets_with_[(w * kWordBits + i) * column_words + column] = square[i];
      }
    }
  }
}

std::vector<int32_t> SetSelection::AllOf(const LowerSetFamily& family) {
  std::vector<int32_t> all(static_cast<size_t>(family.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

SetSelection::SetSelection(const LowerSetFamily& family, std::vector<int32_t> ascending)
    : sets(std::move(ascending)), bits(WordCount(static_cast<size_t>(family.size()))) {
  for (const int32_t set : sets) {
    bits[static_cast<size_t>(set) / kWordBits] |= uint64_t{1}
                                                  << (static_cast<size_t>(set) % kWordBits);
  }
}

}  // namespace ckplan
