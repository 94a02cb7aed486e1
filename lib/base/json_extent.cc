#include "lib/base/json_extent.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/file.h"

namespace ckplan {
namespace {

// Counts of brackets, commas and colons outside strings.
struct Extent {
  int depth = 0;       // The deepest nesting.
  size_t values = 0;   // An upper bound on the number of values, if the text is JSON.
  size_t members = 0;  // One for each colon.
};

Extent MeasureExtent(std::string_view text) {
  Extent extent;
  int level = 0;
  bool is_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_string) {
      if (c == '\\') ++at;
      if (c == '"') is_string = false;
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      extent.depth = std::max(extent.depth, ++level);
      ++extent.values;
    } else if (c == '}' || c == ']') {
      --level;
    } else if (c == ',') {
      ++extent.values;
    } else if (c == ':') {
      ++extent.members;
    }
  }
  return extent;
}

Error TooLarge(const std::string& where, std::string_view what) {
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("{}: {}, more than ckplan accepts", where, what));
}

}  // namespace

Result<size_t> MeasureJson(std::string_view text, const std::string& where) {
  if (text.size() > kMaxTextBytes) {
    return TooLarge(where, fmt::format("it has more than {} bytes", kMaxTextBytes));
  }
  const Extent extent = MeasureExtent(text);
  if (extent.depth > kMaxJsonLevels) {
    return TooLarge(where, fmt::format("its brackets nest deeper than {} levels", kMaxJsonLevels));
  }
  if (extent.values > kMaxJsonValues) {
    return TooLarge(where, fmt::format("it has more than {} values", kMaxJsonValues));
  }
  return extent.members;
}

}  // namespace ckplan
