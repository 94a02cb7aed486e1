// The size of a JSON text, judged before it is parsed: a parsed document takes many times the
// memory of its text, and code that walks it recurses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

// Our files have six levels.
inline constexpr int kMaxJsonLevels = 100;
// Some 2 GiB as a document.
inline constexpr size_t kMaxJsonValues = size_t{1} << 25;

// The number of members of objects that the text spells out, if it is JSON. kInvalidInput: it has
// more than kMaxTextBytes, kMaxJsonLevels or kMaxJsonValues. `where` names it in messages.
Result<size_t> MeasureJson(std::string_view text, const std::string& where);

// The members of all objects in a parsed document: fewer than MeasureJson found if an object has a
// key twice, since the document holds only one of the two.
template <typename Json>
size_t CountMembers(const Json& value) {
  if (!value.is_structured()) return 0;
  size_t count = value.is_object() ? value.size() : 0;
  for (const Json& member : value) count += CountMembers(member);
  return count;
}

}  // namespace ckplan
