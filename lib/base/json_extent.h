// Measures a JSON text before parsing: a parsed document needs many times the memory of its text,
// and deep nesting would overflow the stack of the recursive code that walks it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

// ckplan's own files have six levels.
inline constexpr int kMaxJsonLevels = 100;
// A parsed document of this many values takes about 2 GiB.
inline constexpr size_t kMaxJsonValues = size_t{1} << 25;

// Counts the object members in a JSON text, including repeated keys. kInvalidInput: the text
// exceeds kMaxTextBytes, kMaxJsonLevels or kMaxJsonValues. `where` names the text in messages.
Result<size_t> MeasureJson(std::string_view text, const std::string& where);

// Counts the members of all objects in a parsed document. The count is lower than MeasureJson's if
// an object repeats a key, since parsing drops the duplicate.
template <typename Json>
size_t CountMembers(const Json& value) {
  if (!value.is_structured()) return 0;
  size_t count = value.is_object() ? value.size() : 0;
  for (const Json& member : value) count += CountMembers(member);
  return count;
}

}  // namespace ckplan
