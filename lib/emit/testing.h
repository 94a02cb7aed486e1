// Helpers for tests of files: they damage texts and collect the reported faults.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "lib/base/result.h"

namespace ckplan {

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Returns the message and the notes as one text, for searching.
template <typename T>
std::string FaultsOf(const Result<T>& read) {
  if (read.ok()) return "no fault";
  CHECK(read.error().code == ErrorCode::kInvalidInput);
  std::string all = read.error().message;
  for (const std::string& note : read.error().notes) all += "\n" + note;
  return all;
}

}  // namespace ckplan
