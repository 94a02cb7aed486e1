// A compact list of lists, and a list that skips duplicates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace ckplan {

// Lists of integers, stored in one array: lists[i] is the list of item i.
class FlatLists {
 public:
  FlatLists() = default;
  explicit FlatLists(const std::vector<std::vector<int32_t>>& lists) {
    for (const std::vector<int32_t>& list : lists) Append(list);
  }

  void Append(std::span<const int32_t> list) {
    items_.insert(items_.end(), list.begin(), list.end());
    starts_.push_back(static_cast<int32_t>(items_.size()));
  }

  std::span<const int32_t> operator[](int32_t i) const {
    const auto at = static_cast<size_t>(i);
    const auto start = static_cast<size_t>(starts_[at]);
    return {items_.data() + start, static_cast<size_t>(starts_[at + 1]) - start};
  }
  size_t size() const { return starts_.size() - 1; }

 private:
  std::vector<int32_t> items_;
  std::vector<int32_t> starts_ = {0};
};

// Appends items to `list`, skipping those it already contains. Append takes logarithmic time.
template <typename T>
class UniqueAppender {
 public:
  explicit UniqueAppender(std::vector<T>& list) : list_(list), seen_(list.begin(), list.end()) {}

  void Append(const T& item) {
    if (seen_.insert(item).second) list_.push_back(item);
  }

 private:
  std::vector<T>& list_;
  std::set<T> seen_;
};

}  // namespace ckplan
