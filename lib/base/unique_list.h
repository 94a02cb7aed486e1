// A list without repetitions, in the order of first mention.
#pragma once

#include <set>
#include <vector>

namespace ckplan {

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
