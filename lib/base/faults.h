// Collects all faults of an input, so that the user sees them at once.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

class Faults {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    ++count_;
    if (texts_.size() < kMaxReported) {
      texts_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
  }
  bool empty() const { return count_ == 0; }

  // Makes a kInvalidInput error "WHAT: the first fault", with the other faults as notes. At least
  // one fault must have been added.
  Error ToError(const std::string& what) && {
    Error error = MakeError(ErrorCode::kInvalidInput, fmt::format("{}: {}", what, texts_.front()));
    error.notes.assign(texts_.begin() + 1, texts_.end());
    if (count_ > texts_.size()) {
      error.notes.push_back(fmt::format("and {} more faults", count_ - texts_.size()));
    }
    return error;
  }

 private:
  static constexpr size_t kMaxReported = 10;
  std::vector<std::string> texts_;
  size_t count_ = 0;
};

}  // namespace ckplan
