#include "lib/base/glob.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/check.h"
#include "lib/base/printable.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

constexpr size_t kBytes = 256;  // The number of different bytes.

}  // namespace

bool IsGlob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

Result<Done> CheckGlob(std::string_view text) {
  if (text.size() <= kMaxGlobBytes || !IsGlob(text)) return Done{};
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("the pattern \"{}\" is too long: patterns with * or ? may have at most {} bytes",
                  Printable(text, kLongestName), kMaxGlobBytes));
}

Glob::Glob(std::string_view pattern) {
  CKPLAN_CHECK(pattern.size() <= kMaxGlobBytes, "CheckGlob was asked");
  length_ = pattern.size() - static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '*'));
  words_ = length_ / kWordBits + 1;
  takes_.resize(kBytes * words_);
  stays_.resize(words_);
  size_t state = 0;
  for (const char c : pattern) {
    if (c == '*') {
      Set(&stays_, 0, state);
      continue;
    }
    if (c == '?') {
      for (size_t byte = 0; byte < kBytes; ++byte) Set(&takes_, byte, state);
    } else {
      Set(&takes_, static_cast<unsigned char>(c), state);
    }
    ++state;
  }
}

void Glob::Set(std::vector<uint64_t>* states, size_t row, size_t state) const {
  (*states)[row * words_ + state / kWordBits] |= uint64_t{1} << (state % kWordBits);
}

bool Glob::Matches(std::string_view name) const {
  constexpr size_t kBetweenPolls = 4096;
  if (name.size() < length_) return false;
  std::array<uint64_t, kMaxWords> states{1};
  for (size_t at = 0; at < name.size(); ++at) {
    if (at % kBetweenPolls == 0) PollStop();
    const uint64_t* const takes = &takes_[static_cast<unsigned char>(name[at]) * words_];
    uint64_t carry = 0;
    uint64_t any = 0;
    for (size_t word = 0; word < words_; ++word) {
      const uint64_t taken = states[word] & takes[word];
      states[word] = (taken << 1) | carry | (states[word] & stays_[word]);
      carry = taken >> (kWordBits - 1);
      any |= states[word];
    }
    if (any == 0) return false;
  }
  return (states[length_ / kWordBits] >> (length_ % kWordBits) & 1) != 0;
}

}  // namespace ckplan
