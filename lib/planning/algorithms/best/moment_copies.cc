#include "lib/planning/algorithms/best/moment_copies.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/planning/algorithms/best/program_units.h"

namespace ckplan {
namespace {

// Waits of a whole step count about so much: neither they nor their coefficients are then far from
// the numbers of the other columns.
constexpr double kMostWait = 64;

}  // namespace

MomentCopies::MomentCopies(const RunProblem& problem, std::span<const OpId> order,
                           std::span<const int32_t> moments, const CopyTimes& times, int64_t unit,
                           MipModel* model)
    : problem_(problem),
      order_(order),
      moments_(moments),
      times_(times),
      unit_(unit),
      model_(model),
      clock_(order.size() + 1),
      made_at_(At(problem.value_count), -1) {
  for (size_t i = 0; i < order.size(); ++i) {
    clock_[i + 1] = clock_[i] + problem.cost[At(order[i].index())];
    for (const int32_t write : problem.writes[order[i].index()]) {
      made_at_[At(write)] = static_cast<int32_t>(i);
    }
  }
  while (Units(clock_.back()) > kMostWait * wait_unit_) wait_unit_ *= 2;
  for (size_t j = 0; j <= moments.size(); ++j) {
    waits_.push_back(model->AddColumn({.cost = wait_unit_}));
  }
}

void MomentCopies::AddMoment(const std::vector<int>& kept) {
  const size_t j = loads_.size();
  const auto end = static_cast<int32_t>(order_.size());
  std::vector<int32_t>& first = first_reads_.emplace_back(kept.size(), end);
  for (int32_t i = end; i-- > moments_[j];) {
    for (const int32_t read : problem_.reads[order_[At(i)].index()]) first[At(read)] = i;
  }
  std::vector<int>& loads = loads_.emplace_back(kept.size(), kNoColumn);
  std::vector<int>& hosted = hosted_.emplace_back(kept.size(), kNoColumn);
  for (size_t u = 0; u < kept.size(); ++u) {
    const int before = j == 0 ? kNoColumn : hosted_[j - 1][u];
    const bool may_load = kept[u] != kNoColumn && times_.may_move[u];
    if (may_load) loads[u] = model_->AddColumn({.upper = 1, .is_integer = true});
    if (!may_load || before == kNoColumn) {
      // One of the two is the only reason for H.
      hosted[u] = may_load ? loads[u] : before;
      continue;
    }
    hosted[u] = model_->AddColumn({.upper = 1});
    model_->AddRow(0, kMipInfinity, {{hosted[u], 1}, {loads[u], -1}});
    model_->AddRow(0, kMipInfinity, {{hosted[u], 1}, {before, -1}});
  }
}

// Returns the cost of the first runs in [first, end).
double MomentCopies::LengthBetween(int32_t first, int32_t end) const {
  if (first >= end) return 0;
  // Times are rounded up here and copies down, so that what fits is never refused.
  return static_cast<double>((clock_[At(end)] - clock_[At(first)] + unit_ - 1) / unit_);
}

// Adds the reruns and waits of an interval; number 0 is what comes before the first moment.
void MomentCopies::AddElapsed(size_t interval, const std::vector<std::vector<int>>& reruns,
                              Row* row) const {
  row->entries.push_back({waits_[interval], -wait_unit_});
  if (interval == 0) return;
  const std::vector<int>& columns = reruns[interval - 1];
  for (size_t op = 0; op < columns.size(); ++op) {
    const double cost = Units(problem_.cost[op]);
    if (columns[op] != kNoColumn && cost > 0) row->entries.push_back({columns[op], -cost});
  }
}

void MomentCopies::AddOuts(size_t j, int32_t from, Row* row) const {
  for (size_t u = 0; u < made_at_.size(); ++u) {
    if (hosted_[j][u] == kNoColumn || made_at_[u] < from) continue;
    row->entries.push_back({hosted_[j][u], Units(times_.out[u])});
  }
}

void MomentCopies::AddIns(size_t j, int32_t to, Row* row) const {
  for (size_t u = 0; u < made_at_.size(); ++u) {
    if (loads_[j][u] == kNoColumn || first_reads_[j][u] > to) continue;
    row->entries.push_back({loads_[j][u], Units(times_.in[u])});
  }
}

MomentCopies::Row MomentCopies::RowOf(const ChargedWindow& charged,
                                      const std::vector<std::vector<int>>& reruns) const {
  const auto at = std::lower_bound(moments_.begin(), moments_.end(), charged.moment);
  const auto j = static_cast<size_t>(at - moments_.begin());
  const int32_t position = charged.window.position;
  Row row;
  if (charged.window.is_out) {
    const auto first = std::upper_bound(moments_.begin(), moments_.end(), position);
    for (auto i = static_cast<size_t>(first - moments_.begin()); i <= j; ++i) {
      AddElapsed(i, reruns, &row);
    }
    AddOuts(j, position, &row);
    row.length = LengthBetween(position + 1, charged.moment);
    return row;
  }
  for (size_t i = j; i < moments_.size() && moments_[i] < position; ++i) {
    AddElapsed(i + 1, reruns, &row);
    AddIns(i, position, &row);
  }
  row.length = LengthBetween(charged.moment + 1, position);
  return row;
}

void MomentCopies::AddWindow(const ChargedWindow& charged,
                             const std::vector<std::vector<int>>& reruns) {
  Row row = RowOf(charged, reruns);
  const double length = row.length;
  model_->AddRow(-kMipInfinity, length, std::move(row.entries));
}

// Returns the time of reruns and waits in each interval; number 0 is before the first moment.
std::vector<double> MomentCopies::ElapsedIn(const std::vector<double>& values,
                                            const std::vector<std::vector<int>>& reruns) const {
  std::vector<double> elapsed;
  for (size_t i = 0; i < waits_.size(); ++i) {
    Row row;
    AddElapsed(i, reruns, &row);
    double sum = 0;
    for (const MipEntry& entry : row.entries) sum -= entry.coefficient * values[At(entry.column)];
    elapsed.push_back(sum);
  }
  return elapsed;
}

std::vector<ChargedWindow> MomentCopies::Exceeded(
    const std::vector<double>& values, const std::vector<std::vector<int>>& reruns) const {
  const std::vector<double> elapsed = ElapsedIn(values, reruns);
  std::vector<ChargedWindow> exceeded;
  for (size_t j = 0; j < moments_.size(); ++j) {
    for (const auto& found :
         {MostExceededOut(j, values, elapsed), MostExceededIn(j, values, elapsed)}) {
      if (found) exceeded.push_back({moments_[j], *found});
    }
  }
  return exceeded;
}

std::optional<CopyWindow> MomentCopies::MostExceededOut(size_t j, const std::vector<double>& values,
                                                        const std::vector<double>& elapsed) const {
  std::vector<double> copies(order_.size());
  for (size_t u = 0; u < made_at_.size(); ++u) {
    if (hosted_[j][u] == kNoColumn) continue;
    copies[At(made_at_[u])] += Units(times_.out[u]) * values[At(hosted_[j][u])];
  }
  std::optional<CopyWindow> found;
  double most = Slight();
  double sum = -elapsed[j];
  size_t interval = j;  // The one that the position is in.
  for (int32_t position = moments_[j]; position-- > 0;) {
    while (interval > 0 && position < moments_[interval - 1]) sum -= elapsed[--interval];
    sum += copies[At(position)];
    const double excess = sum - LengthBetween(position + 1, moments_[j]);
    if (copies[At(position)] == 0 || excess <= most) continue;
    most = excess;
    found = CopyWindow{true, position};
  }
  return found;
}

std::optional<CopyWindow> MomentCopies::MostExceededIn(size_t j, const std::vector<double>& values,
                                                       const std::vector<double>& elapsed) const {
  const auto end = static_cast<int32_t>(order_.size());
  std::vector<double> copies(order_.size() + 1);
  std::optional<CopyWindow> found;
  double most = Slight();
  double sum = 0;
  size_t next = j;  // The next moment on the way.
  for (int32_t position = moments_[j] + 1; position <= end; ++position) {
    for (; next < moments_.size() && moments_[next] < position; ++next) {
      sum -= elapsed[next + 1];
      for (size_t u = 0; u < made_at_.size(); ++u) {
        if (loads_[next][u] == kNoColumn) continue;
        copies[At(first_reads_[next][u])] += Units(times_.in[u]) * values[At(loads_[next][u])];
      }
    }
    sum += copies[At(position)];
    const double excess = sum - LengthBetween(moments_[j] + 1, position);
    if (copies[At(position)] == 0 || excess <= most) continue;
    most = excess;
    found = CopyWindow{false, position};
  }
  return found;
}

size_t MomentCopies::WaitsBeyondOne(double cost) const {
  return waits_.size() * static_cast<size_t>(std::max(0.0, std::ceil(cost / wait_unit_)));
}

}  // namespace ckplan
