// Lists of lists in one piece, and lists without repetition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace ckplan {

// Many lists of integers in one array: lists[i] is the list of item i.
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

// A list without repetitions, in the order of first mention.

// Appends to `list` those items that it does not hold yet. Each call takes logarithmic time, so the
// list may be long.
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
