// The trade-off of memory and time of one order, computed once and read by every search.
//
//   added time
//        | x
//        |\ \                     x: plans found, each with less memory or less time than the
//        others | \  x                   lines: proven, no plan of the order is below any of them
//        |  \   \_ x
//        |   \____- _ x___x
//        +------------------ peak
//
// Every minimum cut over nested moments (nested_network.h) gives both a line, which bounds all
// budgets at once, and a plan. The prices for a budget come from a small linear program over all
// cuts so far (price_master.h), so a budget next to a known one costs only a few cuts. If a cut's
// plan exceeds the budget between the moments, a new moment is added. What the cut keeps then
// guides an eviction (cut_rounding.h), whose plans fit.
//
// With other micro-batches in flight, peaks include their bytes, in plans and in bounds.
//
// Plans and lines are only ever added, so an answer never gets worse. Work is counted in cuts and
// plans, so the same questions in the same order get the same answers everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/curve/nested_network.h"
#include "lib/planning/algorithms/best/curve/price_master.h"
#include "lib/planning/algorithms/best/eviction.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/plan/certificate.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

class BestProblem;

// How much work a curve does per budget. A budget is settled once the gap between its plan and its
// bound is one part in `settled_parts` of a step.
struct CurveWork {
  int64_t settled_parts = 1'000;
  int budgets = 16;     // How many Trace looks at.
  int moments = 6;      // The most, together with kMaxNodes.
  int cuts = 12;        // For the prices of a budget.
  int evictions = 4;    // Rules of eviction, guided by the cut, for a budget that is read.
  int scaled_cuts = 8;  // Cuts at multiples of the prices, for a budget that is read.
  int readings = 4;     // The maximum in ReadWithin.
  // Plans for a budget that is read omit reruns that the budget makes unnecessary.
  bool drops_spare = true;
  // On small graphs, a budget that is read gets all rules of eviction if the first few don't settle
  // it.
  bool has_all_rules = true;
};

inline constexpr CurveWork kQuickCurve = {500, 8, 4, 8, 2, 4, 4};
inline constexpr CurveWork kBriefCurve = {500, 8, 4, 8, 2, 4, 4, true, false};
inline constexpr CurveWork kNormalCurve = {2'000, 16, 8, 16, 8, 24, 6};
inline constexpr CurveWork kThoroughCurve = {5'000, 16, 8, 24, 8, 16, 8};

class TradeOffCurve {
 public:
  struct PlanOnCurve {
    int64_t peak = 0;
    int64_t overhead = 0;  // Over running every operation once: see BestOutcome.
    Runs runs;
  };

  // Keeps a reference to `problem`, and begins with the order itself, which has each operation once
  // and after those it needs.
  TradeOffCurve(BestProblem* problem, Runs order);

  const Runs& order() const { return order_; }
  // By rising peak and falling overhead; never empty.
  const std::vector<PlanOnCurve>& plans() const { return plans_; }
  std::vector<CurvePoint> Points() const;
  // The fastest known plan within the budget, or null.
  const PlanOnCurve* BestWithin(int64_t budget) const;
  // The plan with the lowest peak that adds at most this, or the fastest plan if none does.
  const PlanOnCurve& LeastWithin(int64_t most_added) const;
  const PlanOnCurve& Fastest() const { return plans_.back(); }

  // A lower bound on the added time of the order's plans within this budget.
  int64_t BoundWithin(int64_t budget) const;
  // A lower bound on the peak of the order's plans that add at most this.
  int64_t MinPeakWithin(int64_t most_added) const;
  // The program over moments (docs/bounds.md) that these bounds relax.
  OverheadProof proof() const {
    return moments_.size() > 1 ? OverheadProof::kMoments : OverheadProof::kOneCut;
  }
  // A lower bound on the peak of the order's plans.
  int64_t least_peak() const { return least_peak_; }

  // Adds a known plan. Returns whether it is on the curve now. Its first runs may come in another
  // order; then the bounds don't apply to it.
  bool Offer(const Runs& runs);

  // Searches for plans and bounds at budgets spread over the whole curve.
  void Trace(const CurveWork& work);
  // Searches for a fast plan within the budget, and for a bound on its time. With `enough`, ends
  // with a plan that adds at most this, or with a proof that none does.
  void Read(int64_t budget, const CurveWork& work, std::optional<int64_t> enough = std::nullopt);
  // Searches for the bound only.
  void Prove(int64_t budget);
  // Searches for a plan with little memory that adds at most this.
  void ReadWithin(int64_t most_added, const CurveWork& work);

 private:
  // A query about one budget.
  struct Question {
    int64_t budget = 0;
    int64_t tolerance = 0;
    std::optional<int64_t> enough = std::nullopt;
    bool is_read = false;  // For Read. Budgets on the way to other answers get less work.
  };

  Question Ask(int64_t budget, const CurveWork& work) const;
  // Tells whether the budget's plan is within the tolerance of the bound, or `enough` is decided.
  bool IsSettled(const Question& question) const;
  bool OfferOne(Runs runs);
  bool OfferExpanded();
  bool HasMomentAt(int32_t position) const;
  void Rebuild();
  void PickMoments(const std::vector<Question>& questions, const CurveWork& work);
  bool AddMoments(const std::map<int32_t, int64_t>& excess, const CurveWork& work);
  std::optional<std::pair<int32_t, int64_t>> FindMissingMoment(int64_t budget, int cuts);
  bool FindPrices(const Question& question, int cuts);
  void CutAt(const std::vector<double>& prices, NestedNetwork::Ties ties);
  std::vector<int64_t> WholePrices(const std::vector<double>& prices) const;
  bool FitsAtMoments(int64_t budget) const;
  void CutAtMultiples(const std::vector<double>& prices, int cuts,
                      const std::function<bool()>& fits);
  bool EvictBy(const EvictionRule& rule, int64_t budget, const std::vector<bool>& kept);
  void EvictAroundCut(int64_t budget);
  void EvictAt(const Question& question, bool has_prices, const CurveWork& work);
  void Round(const Question& question, const CurveWork& work);
  void Answer(const Question& question, const CurveWork& work);

  BestProblem* const problem_;
  const Runs order_;
  const bool has_aliases_;
  Simulator simulator_;
  FlatSimulator flat_simulator_;
  int64_t once_ = 0;         // The cost of the order.
  int64_t least_added_ = 0;  // What every plan adds: see BestOutcome.
  int32_t peak_moment_ = 0;  // The position where the order itself needs the most memory.
  int64_t least_peak_ = 0;
  std::vector<PlanOnCurve> plans_;
  std::vector<BoundLine> lines_;
  int64_t last_peak_ = 0;  // The peak of the plan that was offered last.

  std::vector<int32_t> moments_;
  std::unique_ptr<NestedNetwork> network_;
  std::unique_ptr<PriceMaster> master_;
  NestedChoice last_choice_;
  // The prices found for a budget, by position in the order: the start after adding moments.
  std::map<int64_t, std::map<int32_t, double>> known_prices_;
  std::map<int64_t, int64_t> answered_;  // By budget: the most settled_parts of an answer.
};

}  // namespace ckplan
