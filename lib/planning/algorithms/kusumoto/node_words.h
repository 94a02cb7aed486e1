// Sets of nodes as words of 64 bits: node i is bit i % 64 of word i / 64.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

inline constexpr size_t kWordBits = 64;

inline size_t WordCount(size_t node_count) { return (node_count + kWordBits - 1) / kWordBits; }
inline size_t WordOf(NodeId v) { return static_cast<size_t>(v.index()) / kWordBits; }
inline uint64_t BitOf(NodeId v) {
  return uint64_t{1} << (static_cast<size_t>(v.index()) % kWordBits);
}
// Returns the node of the lowest bit.
inline NodeId NodeAt(size_t word, uint64_t bits) {
  return NodeId(word * kWordBits + static_cast<size_t>(std::countr_zero(bits)));
}
inline void Flip(uint64_t* words, NodeId v) { words[WordOf(v)] ^= BitOf(v); }
inline bool HasNode(const uint64_t* words, NodeId v) { return (words[WordOf(v)] & BitOf(v)) != 0; }

}  // namespace ckplan
