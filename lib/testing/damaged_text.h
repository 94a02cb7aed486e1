// Damages text and collects a reader's error messages, for tests of file formats.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/rng.h"

namespace ckplan {

// Replaces the first occurrence. Fails the test if `from` doesn't occur.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Replaces up to four characters of a JSON text with random bytes or characters common in JSON.
inline std::string DamageRandomly(Rng& rng, std::string text) {
  constexpr std::string_view kLikely = "0123456789-.,:[]{}\"enu";
  for (int64_t i = rng.Between(1, 4); i > 0; --i) {
    const auto at = static_cast<size_t>(rng.Between(0, static_cast<int64_t>(text.size()) - 1));
    text[at] = rng.Chance(50) ? static_cast<char>(rng.Between(0, 255))
                              : kLikely[static_cast<size_t>(rng.Between(0, kLikely.size() - 1))];
  }
  return text;
}

// Returns the error's message and notes as one text to search in.
template <typename T>
std::string FaultsOf(const Result<T>& read) {
  if (read.ok()) return "no fault";
  CHECK(read.error().code == ErrorCode::kInvalidInput);
  std::string all = read.error().message;
  for (const std::string& note : read.error().notes) all += "\n" + note;
  return all;
}

}  // namespace ckplan
