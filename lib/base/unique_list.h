// A list without repetitions, filled in the order of first mention.
#pragma once

#include <set>
#include <vector>

namespace ckplan {

// Appends to `list` what it does not hold yet. A call costs the logarithm of the length, so lists
// of any length may be filled.
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
