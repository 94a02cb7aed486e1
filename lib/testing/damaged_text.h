// Damages text, and collects the error messages of a reader about it, for tests of file formats.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "lib/base/result.h"

namespace ckplan {

// Requires that `from` occurs.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The message and the notes of the error in one text, in which a test searches.
template <typename T>
std::string FaultsOf(const Result<T>& read) {
  if (read.ok()) return "no fault";
  CHECK(read.error().code == ErrorCode::kInvalidInput);
  std::string all = read.error().message;
  for (const std::string& note : read.error().notes) all += "\n" + note;
  return all;
}

}  // namespace ckplan
