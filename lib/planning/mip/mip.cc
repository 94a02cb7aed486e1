#include "lib/planning/mip/mip.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/check.h"

namespace ckplan {
namespace {

// Sorts entries by column and adds up those in the same column. The sort is stable, so the sums are
// the same on every machine.
std::vector<MipEntry> SortAndMerge(std::vector<MipEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const MipEntry& a, const MipEntry& b) { return a.column < b.column; });
  std::vector<MipEntry> merged;
  merged.reserve(entries.size());
  for (const MipEntry& entry : entries) {
    if (!merged.empty() && merged.back().column == entry.column) {
      merged.back().coefficient += entry.coefficient;
    } else {
      merged.push_back(entry);
    }
  }
  std::erase_if(merged, [](const MipEntry& entry) { return entry.coefficient == 0; });
  return merged;
}

bool IsWithin(double value, double lower, double upper, double tolerance) {
  return value >= lower - tolerance && value <= upper + tolerance;
}

}  // namespace

int MipModel::AddColumn(const MipColumn& column) {
  CKPLAN_CHECK(columns_.size() < std::numeric_limits<int>::max(), "column numbers fit in int");
  columns_.push_back(column);
  return static_cast<int>(columns_.size()) - 1;
}

int MipModel::AddRow(double lower, double upper, std::vector<MipEntry> entries) {
  CKPLAN_CHECK(rows_.size() < std::numeric_limits<int>::max(), "row numbers fit in int");
  for (const MipEntry& entry : entries) {
    CKPLAN_CHECK(entry.column >= 0 && static_cast<size_t>(entry.column) < columns_.size(),
                 "a row uses only existing columns");
  }
  rows_.push_back({lower, upper, SortAndMerge(std::move(entries))});
  return static_cast<int>(rows_.size()) - 1;
}

double MipModel::Objective(std::span<const double> values) const {
  double sum = 0;
  for (size_t j = 0; j < columns_.size(); ++j) sum += columns_[j].cost * values[j];
  return sum;
}

bool MipModel::IsFeasible(std::span<const double> values, double tolerance) const {
  for (size_t j = 0; j < columns_.size(); ++j) {
    const MipColumn& column = columns_[j];
    if (!IsWithin(values[j], column.lower, column.upper, tolerance)) return false;
    if (column.is_integer && std::abs(values[j] - std::round(values[j])) > tolerance) return false;
  }
  return std::all_of(rows_.begin(), rows_.end(), [&](const MipRow& row) {
    double sum = 0;
    for (const MipEntry& entry : row.entries) {
      sum += entry.coefficient * values[static_cast<size_t>(entry.column)];
    }
    return IsWithin(sum, row.lower, row.upper, tolerance);
  });
}

}  // namespace ckplan
