// A set of small integers of a size fixed at run time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ckplan {

class Bitset {
 public:
  Bitset() = default;
  explicit Bitset(size_t size) : size_(size), words_((size + 63) / 64) {}

  size_t size() const { return size_; }
  bool contains(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void insert(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void erase(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }

  size_t count() const {
    size_t total = 0;
    for (const uint64_t word : words_) total += static_cast<size_t>(std::popcount(word));
    return total;
  }
  bool is_subset_of(const Bitset& other) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      if ((words_[w] & ~other.words_[w]) != 0) return false;
    }
    return true;
  }
  Bitset& operator|=(const Bitset& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  bool operator==(const Bitset&) const = default;

  // Calls visit(i) for each member i, ascending.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t word = words_[w]; word != 0; word &= word - 1) {
        visit(w * 64 + static_cast<size_t>(std::countr_zero(word)));
      }
    }
  }

  uint64_t hash() const {
    uint64_t h = 0x9e3779b97f4a7c15U;
    for (const uint64_t word : words_) {
      h = (h ^ word) * 0xff51afd7ed558ccdU;
      h ^= h >> 32;
    }
    return h;
  }

 private:
  size_t size_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace ckplan
