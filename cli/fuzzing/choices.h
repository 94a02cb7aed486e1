// Makes decisions from the fuzzer's bytes. Each decision takes one byte, or a line, and 0 when the
// bytes are used up, so that every input is valid and short inputs give small results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/fuzzing/fuzz_targets.h"

namespace ckplan {

class Choices {
 public:
  explicit Choices(FuzzInput input) : rest_(input) {}

  bool is_used_up() const { return rest_.empty(); }
  // Returns a number in [0, count); count is at most 256.
  size_t Below(size_t count) { return Byte() % count; }
  bool Flag() { return (Byte() & 1) != 0; }
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  // Returns the bytes up to the next newline, and skips it.
  std::string Line() {
    const std::string_view text = TextOf(rest_);
    const std::string line(text.substr(0, text.find('\n')));
    rest_ = rest_.subspan(std::min(rest_.size(), line.size() + 1));
    return line;
  }

 private:
  FuzzInput rest_;
};

}  // namespace ckplan
