#include "lib/base/nearest_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  // rows[i][j] is the distance between the first i letters of a and the first j of b.
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

// Returns the name in lower case without leading hyphens.
std::string Plain(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string plain;
  for (const char c : name) {
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

// The most work that all distances together may take, in letters of one name times letters of the
// other: a tenth of a second. A guess is not worth more, and thousands of long names would take
// minutes.
constexpr size_t kMaxWork = 30'000'000;

// Returns the distance if the two are near, else nothing. The work is subtracted from `left`; if
// too little is left, nothing counts as near.
std::optional<size_t> NearDistance(const std::string& typed, const std::string& name,
                                   size_t* left) {
  constexpr size_t kShortestBeginning = 3;
  const size_t longer = std::max(typed.size(), name.size());
  const bool is_beginning = typed.size() >= kShortestBeginning && name.starts_with(typed);
  const size_t shorter = std::min(typed.size(), name.size());
  // A distance is at least the difference of the lengths, so very long names need no comparison.
  if (is_beginning) return longer - shorter;
  if (longer - shorter > longer / 3) return std::nullopt;
  const size_t work = (typed.size() + 1) * (name.size() + 1);
  if (work > *left) return std::nullopt;
  *left -= work;
  const size_t distance = EditDistance(typed, name);
  if (distance > longer / 3) return std::nullopt;
  return distance;
}

}  // namespace

std::optional<std::string_view> NearName(std::string_view typed,
                                         std::span<const std::string_view> names) {
  const std::string plain = Plain(typed);
  std::optional<std::string_view> nearest;
  size_t least = 0;
  size_t left = kMaxWork;
  for (const std::string_view name : names) {
    PollStop();
    const std::optional<size_t> distance = NearDistance(plain, Plain(name), &left);
    if (!distance || (nearest && *distance >= least)) continue;
    nearest = name;
    least = *distance;
  }
  return nearest;
}

std::string DidYouMean(std::string_view typed, std::span<const std::string_view> names) {
  const std::optional<std::string_view> name = NearName(typed, names);
  return name ? fmt::format("; did you mean \"{}\"?", *name) : "";
}

std::string NoneOf(std::string_view typed, std::span<const std::string_view> names) {
  const std::string meant = DidYouMean(typed, names);
  return fmt::format("\"{}\"{} are {}", typed, meant.empty() ? "; known" : meant + " Known",
                     fmt::join(names, ", "));
}

}  // namespace ckplan
