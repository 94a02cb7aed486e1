#include "lib/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lib/base/check.h"

namespace ckplan {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  // rows[i][j]: distance between the first i letters of a and the first j of b.
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

}  // namespace

std::string_view NearestName(std::string_view typed, std::span<const std::string_view> names) {
  CKPLAN_CHECK(!names.empty(), "a nearest name needs names");
  return *std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return EditDistance(typed, a) < EditDistance(typed, b);
  });
}

}  // namespace ckplan
