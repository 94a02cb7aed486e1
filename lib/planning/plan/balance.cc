#include "lib/planning/plan/balance.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace ckplan {
namespace {

__extension__ using Wide = __int128;

Bytes MiddleOf(Bytes low, Bytes high) { return low + Bytes((high - low).count() / 2); }

}  // namespace

bool Balance::IsBetter(const CurvePoint& a, const CurvePoint& b) const {
  const auto rank = [this](const CurvePoint& point) {
    const Wide product =
        static_cast<Wide>((point.peak + constants).count()) * (step + point.overhead).count();
    return std::tuple(product, point.peak, point.overhead);
  };
  return rank(a) < rank(b);
}

CurvePoint Balance::BestOf(std::span<const CurvePoint> front) const {
  return *std::min_element(
      front.begin(), front.end(),
      [this](const CurvePoint& a, const CurvePoint& b) { return IsBetter(a, b); });
}

std::vector<Bytes> Balance::BudgetsBesideBest(std::span<const CurvePoint> front) const {
  const auto best = std::find(front.begin(), front.end(), BestOf(front));
  std::vector<Bytes> budgets;
  if (best != front.begin()) budgets.push_back(MiddleOf(std::prev(best)->peak, best->peak));
  if (std::next(best) != front.end()) {
    budgets.push_back(MiddleOf(best->peak, std::next(best)->peak));
  }
  return budgets;
}

}  // namespace ckplan
