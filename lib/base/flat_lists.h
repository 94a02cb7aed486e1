// Many lists of integers in one array: lists[i] is the list of item i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ckplan {

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

}  // namespace ckplan
