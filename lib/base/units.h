// Distinct types for what must not be mixed: sizes, costs, and the indices of nodes and tensors.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ckplan {

// A signed 64-bit amount of one unit. Sums and differences stay in the unit; nothing converts.
// Overflow cannot happen inside ckplan: TensorGraph::Create bounds every sum (kMaxTotalBytes,
// kMaxTotalCost); sizes that come from files go through checked.h before they get there.
template <typename Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(int64_t times, Quantity a) {
    return Quantity(times * a.count_);
  }

  static constexpr Quantity Max() { return Quantity(std::numeric_limits<int64_t>::max()); }

 private:
  int64_t count_ = 0;
};

using Bytes = Quantity<struct BytesUnit>;
using Cost = Quantity<struct CostUnit>;  // In the unit of the cost model, e.g. nanoseconds.

// The position of a thing in its IdVector. A default-constructed Id refers to nothing.
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

// A vector that only its own kind of id can index.
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

}  // namespace ckplan
