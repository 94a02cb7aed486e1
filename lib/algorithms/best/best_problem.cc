#include "lib/algorithms/best/best_problem.h"

namespace ckplan {

BestProblem::BestProblem(const JointGraph& graph) : graph_(graph), flat_(graph) {}

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
