// Distinct types for quantities and indices, so that sizes, costs, nodes and tensors cannot be
// mixed up.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace ckplan {

// Reports that `a` `operation` `b` overflows, and ends the process as CKPLAN_CHECK does.
[[noreturn]] void FailOverflow(int64_t a, char operation, int64_t b);

// A signed 64-bit amount in one unit, without conversions to other units.
// Arithmetic is checked: an overflow is a bug in ckplan and ends the process with exit code 70.
// Inputs cannot cause it: amounts from files go through CheckedAdd and CheckedMul or are compared
// with a bound, and TensorGraph::Create bounds every sum over a graph (kMaxTotalBytes,
// kMaxTotalCost). Hot loops add raw counts and say which bound prevents overflow.
template <typename Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.count_, b.count_, &sum)) FailOverflow(a.count_, '+', b.count_);
    return Quantity(sum);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.count_, b.count_, &difference)) {
      FailOverflow(a.count_, '-', b.count_);
    }
    return Quantity(difference);
  }
  friend constexpr Quantity operator*(int64_t times, Quantity a) {
    int64_t product = 0;
    if (__builtin_mul_overflow(times, a.count_, &product)) FailOverflow(times, '*', a.count_);
    return Quantity(product);
  }

  static constexpr Quantity Max() { return Quantity(std::numeric_limits<int64_t>::max()); }

 private:
  int64_t count_ = 0;
};

using Bytes = Quantity<struct BytesUnit>;
using Cost = Quantity<struct CostUnit>;  // In the unit of the cost model, e.g. nanoseconds.

// The index of an item in its IdVector. A default-constructed Id is none.
template <typename Kind>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int32_t index) : index_(index) {}
  constexpr explicit Id(size_t index) : index_(static_cast<int32_t>(index)) {}

  constexpr int32_t index() const { return index_; }
  constexpr bool is_none() const { return index_ < 0; }
  constexpr auto operator<=>(const Id&) const = default;
  constexpr Id& operator++() {
    ++index_;
    return *this;
  }

 private:
  int32_t index_ = -1;
};

using NodeId = Id<struct NodeKind>;
using TensorId = Id<struct TensorTag>;

// The ids [0, size), for range-based for loops.
template <typename IdType>
class IdRange {
 public:
  class Iterator {
   public:
    explicit constexpr Iterator(IdType id) : id_(id) {}
    constexpr IdType operator*() const { return id_; }
    constexpr Iterator& operator++() {
      ++id_;
      return *this;
    }
    constexpr bool operator!=(const Iterator& other) const { return id_ != other.id_; }

   private:
    IdType id_;
  };
  explicit constexpr IdRange(size_t size) : end_(size) {}
  constexpr Iterator begin() const { return Iterator(IdType(0)); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  IdType end_;
};

// A vector indexed by one kind of id.
template <typename IdType, typename T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t size, T value = T()) : items_(size, value) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  decltype(auto) operator[](IdType id) { return items_[static_cast<size_t>(id.index())]; }
  decltype(auto) operator[](IdType id) const { return items_[static_cast<size_t>(id.index())]; }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  IdRange<IdType> ids() const { return IdRange<IdType>(items_.size()); }
  void resize(size_t size, T value = T()) { items_.resize(size, value); }
  IdType push_back(T item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> items_;
};

// Arithmetic on sizes from files. Returns nothing on overflow.
inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Rounds `amount` up to a multiple of `alignment`, which is at least 1. Their sum must not
// overflow.
inline int64_t RoundUp(int64_t amount, int64_t alignment) {
  return (amount + alignment - 1) / alignment * alignment;
}

}  // namespace ckplan
