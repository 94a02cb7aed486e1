#include "lib/planning/algorithms/best/best_problem.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"

namespace ckplan {

BestProblem::BestProblem(const JointGraph& graph, const IdVector<OpId, bool>& is_recomputed)
    : graph_(graph), flat_(graph) {
  if (std::find(is_recomputed.begin(), is_recomputed.end(), true) == is_recomputed.end()) return;
  rules_ = RulesOf(graph, flat_);
  rules_->is_recomputed.assign(is_recomputed.begin(), is_recomputed.end());
  const std::vector<bool> is_forced = ForcedToRunAgain(*rules_, RequiredOps(flat_));
  JointGraphParts parts = PartsOf(graph);
  for (const OpId id : parts.ops.ids()) {
    if (!is_forced[static_cast<size_t>(id.index())]) continue;
    forced_cost_ += parts.ops[id].cost.count();
    parts.ops[id].cost = Cost(0);
  }
  unforced_ = JointGraph::Create(std::move(parts)).value();
  unforced_flat_.emplace(*unforced_);
}

BestProblem::~BestProblem() = default;

TradeOffCurve* BestProblem::curve() {
  if (!curve_) curve_ = std::make_unique<TradeOffCurve>(this, RequiredOwnOrder(flat_));
  return curve_.get();
}

const Certificates& BestProblem::certificates() {
  if (!certificates_) certificates_ = FindCertificates(flat_);
  return *certificates_;
}

const OrderWithPeak& BestProblem::MinCutOrder(int starts) {
  const auto known = min_cut_orders_.find(starts);
  if (known != min_cut_orders_.end()) return known->second;
  MinCutOrderOptions options;
  options.starts = starts;
  return min_cut_orders_.emplace(starts, FindMinCutOrder(flat_, options)).first->second;
}

}  // namespace ckplan
