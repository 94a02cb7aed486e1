#include "lib/planning/planner/largest_size.h"

#include <algorithm>
#include <cmath>

namespace ckplan {
namespace {

// A guess beyond all measured counts is at most this many times the largest that fits.
constexpr int64_t kMaxGrowth = 16;
// After this many linear guesses on the same side, bisect.
constexpr int kMaxInARow = 3;
// How far beyond the largest size to look: one part in this many.
constexpr int64_t kPartBeyond = 16;

// Returns the count, rounded down, at which the line through both points reaches 1, if it does.
std::optional<int64_t> CountAtOne(const MeasuredCount& a, const MeasuredCount& b) {
  const double slope = (b.value - a.value) / static_cast<double>(b.count - a.count);
  if (!std::isfinite(slope) || slope <= 0) return std::nullopt;
  const double count = static_cast<double>(a.count) + (1 - a.value) / slope;
  if (count >= static_cast<double>(kMaxCount)) return kMaxCount;
  return static_cast<int64_t>(std::floor(count));
}

class LargestSizeFinder {
 public:
  LargestSizeFinder(MeasuredCount fits, const SizeSearch& search)
      : search_(search), low_(fits), reached_(fits.count) {}

  Result<LargestSize> Run() && {
    if (!IsFound() && search_.first_guess) {
      CKPLAN_RETURN_IF_ERROR(Try(*search_.first_guess));
      // The guess should be the largest that fits, so the next count probably doesn't.
      if (!IsFound() && !high_) CKPLAN_RETURN_IF_ERROR(Try(reached_ + 1));
    }
    do {
      while (!IsFound()) CKPLAN_RETURN_IF_ERROR(Try(std::max(reached_ + Unit(), GuessByLine())));
      CKPLAN_RETURN_IF_ERROR(LookBeyond());
    } while (!IsFound());
    return LargestSize{low_, high_, is_last_};
  }

 private:
  bool IsFound() const {
    if (search_.tolerance > 0 && low_.value >= 1 - search_.tolerance) return true;
    return high_ ? high_->count - low_.count <= Unit() : low_.count >= kMaxCount;
  }

  // If a larger count fits, the search continues.
  Result<Done> LookBeyond() {
    if (search_.look_beyond == 0 || !high_) return Done{};
    const int64_t width = std::max(low_.count / kPartBeyond, search_.look_beyond);
    const int64_t end = std::min(search_.most, high_->count + width);
    const int64_t unit = std::max(Unit(), (end - high_->count) / search_.look_beyond);
    for (int64_t count = high_->count + unit; count <= end; count += unit) {
      CKPLAN_ASSIGN_OR_RETURN(const double value, search_.measure(count));
      if (value > 1) continue;
      before_ = low_;
      low_ = {count, value};
      reached_ = count;
      high_.reset();
      return Done{};
    }
    is_last_ = end == search_.most && unit == 1;
    return Done{};
  }

  // Returns the smallest difference between counts that matters.
  int64_t Unit() const {
    return search_.parts > 0 ? std::max<int64_t>(1, low_.count / search_.parts) : 1;
  }

  int64_t Limit() const {
    if (high_) return high_->count - 1;
    const int64_t known = std::max({low_.count, search_.first_guess.value_or(1), int64_t{1}});
    return std::min(kMaxCount, known * kMaxGrowth);
  }

  int64_t GuessByLine() {
    // If values are far from linear, guesses can stay on the same side forever.
    const bool is_misled = in_a_row_ >= kMaxInARow;
    if (is_misled) in_a_row_ = 0;
    const std::optional<MeasuredCount>& other = high_ ? high_ : before_;
    const std::optional<int64_t> guess = other ? CountAtOne(low_, *other) : std::nullopt;
    if (high_ && (!guess || is_misled)) return low_.count + (high_->count - low_.count) / 2;
    // The line is flat, or there are too few points for one.
    if (!guess) return before_ ? Limit() : low_.count + 1;
    return *guess;
  }

  Result<Done> Try(int64_t guess) {
    const int64_t count = std::clamp(guess, low_.count + 1, Limit());
    CKPLAN_ASSIGN_OR_RETURN(const double value, search_.measure(count));
    const bool fits = value <= 1;
    in_a_row_ = fits == has_fitted_ ? in_a_row_ + 1 : 1;
    has_fitted_ = fits;
    if (!fits) {
      high_ = {count, value};
      reached_ = low_.count;
      return Done{};
    }
    before_ = low_;
    low_ = {count, value};
    reached_ = count;
    if (!search_.reach) return Done{};
    CKPLAN_ASSIGN_OR_RETURN(const int64_t reached, search_.reach(count));
    // A count known not to fit shows that the estimate is wrong.
    if (!high_ || reached < high_->count) reached_ = reached;
    return Done{};
  }

  const SizeSearch& search_;
  MeasuredCount low_;
  int64_t reached_;  // SizeSearch::reach of `low_`, or `low_` if that failed.
  // A second point for the line, until a count is too large.
  std::optional<MeasuredCount> before_;
  std::optional<MeasuredCount> high_;
  bool has_fitted_ = false;  // The last count tried fits.
  int in_a_row_ = 0;         // Counts in a row that all fit, or all don't.
  bool is_last_ = false;
};

}  // namespace

Result<LargestSize> FindLargestSize(MeasuredCount fits, const SizeSearch& search) {
  return LargestSizeFinder(fits, search).Run();
}

}  // namespace ckplan
