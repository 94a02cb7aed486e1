#include "lib/planning/algorithms/best/best.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/annealing.h"
#include "lib/planning/algorithms/best/any_order.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/planning/mip/mip.h"

namespace ckplan {

BestProblem::BestProblem(const JointGraph& graph, const IdVector<OpId, bool>& is_recomputed,
                         const OtherMicroBatches& others)
    : graph_(graph), flat_(graph, others) {
  if (std::find(is_recomputed.begin(), is_recomputed.end(), true) == is_recomputed.end()) return;
  rules_ = RulesOf(graph, flat_);
  rules_->is_recomputed.assign(is_recomputed.begin(), is_recomputed.end());
  const std::vector<bool> is_forced = FindForcedReruns(*rules_, RequiredOps(flat_));
  JointGraphParts parts = PartsOf(graph);
  for (const OpId id : parts.ops.ids()) {
    if (!is_forced[static_cast<size_t>(id.index())]) continue;
    forced_cost_ += parts.ops[id].cost.count();
    parts.ops[id].cost = Cost(0);
  }
  unforced_ = JointGraph::Create(std::move(parts)).value();
  unforced_flat_.emplace(*unforced_, others);
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

namespace {

// Graphs with more operations than this get this many times fewer moves, and even fewer as they
// grow.
constexpr int64_t kManyOps = 1'000;
constexpr int64_t kFewerMoves = 6;
// Programs then get a fraction of the work, because they rarely finish.
constexpr int64_t kFewerPrograms = 4;

// Plan in another order only if it saves at least one part in this many of the own order's peak.
constexpr int64_t kSameOrderParts = 50;

// Annealing starts this often from each plan of the programs that exceeds the budget, and from the
// best plan.
constexpr int kChains = 2;

// With other micro-batches, annealing gets at least these moves, as no program fits them.
constexpr int64_t kMovesWithoutProgram = 300'000;
// How often a program is solved for one of several micro-batches.
constexpr int64_t kProgramsBesideOthers = 5;

// Annealing gets its full work if it could gain one part in this many of a step.
constexpr int64_t kWorthwhileParts = 200;

// Up to this many operations, programs are fast enough to close the gap to a step divided by
// kProvenParts at any effort.
constexpr int32_t kOpsToProve = 500;
constexpr int64_t kProvenParts = 10'000;

class Solver {
 public:
  Solver(BestProblem* shared, const BestOptions& options)
      : shared_(shared),
        curve_(shared->curve()),
        problem_(shared->flat()),
        options_(options),
        own_order_(curve_->order()) {
    for (const OpId op : own_order_) idle_cost_ += problem_.cost[static_cast<size_t>(op.index())];
    idle_cost_ -= problem_.total_cost;
    outcome_.lower_bound = any_order_bound_ = idle_cost_ + shared->forced_cost();
    if (shared->forced_cost() > 0) {
      outcome_.proof = any_order_proof_ = OverheadProof::kConstraints;
    }
    if (options.before != nullptr) ContinueFrom(*options.before);
  }

  Result<BestOutcome> Run() && {
    try {
      CKPLAN_RETURN_IF_ERROR(Search());
    } catch (const Stopped&) {
      if (!outcome_.runs) throw;
    }
    SettleBound();
    return std::move(outcome_);
  }

 private:
  void ContinueFrom(const BestOutcome& before) {
    outcome_ = before;
    outcome_.program_work = 0;
    any_order_bound_ = before.any_order_bound;
    any_order_proof_ = before.any_order_proof;
    moments_ = before.moments;
    proof_moments_ = before.proof_moments;
  }

  Result<Done> Search() {
    for (const Runs& start : options_.starts) curve_->Offer(start);
    TakeFromCurve();
    Certify();
    if (!IsDone()) CKPLAN_RETURN_IF_ERROR(SolveInOrders());
    if (options_.is_order_free && !IsSettled()) CKPLAN_RETURN_IF_ERROR(SolveInAnyOrder());
    if (options_.work.moves > 0 && !IsDone() && !IsNearEnough()) Anneal();
    outcome_.is_settled = IsNearEnough();
    return Done{};
  }

  Result<Done> SolveInOrders() {
    orders_.push_back(own_order_);
    if (options_.is_order_free) AddMinCutOrder();
    for (size_t i = 0; i < orders_.size() && !IsDone(); ++i) {
      CKPLAN_RETURN_IF_ERROR(SolveInOrder(orders_[i], i == 0));
    }
    return Done{};
  }

  // Proves bounds before searching.
  void Certify() {
    const Certificates& certificates = shared_->certificates();
    // A plan that runs every required operation exactly once is optimal.
    if (outcome_.runs) outcome_.is_optimal = IsOptimal();
    RaisePeakBound(certificates.least_peak_any_plan, PeakProof::kWorkingSet, BoundScope::kAnyOrder);
    if (certificates.least_peak_once_any_order <= options_.budget) return;
    // Some operation runs twice in any order.
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t op = 0; op < problem_.cost.size(); ++op) {
      if (problem_.may_repeat[op]) least = std::min(least, problem_.cost[op]);
    }
    if (least == std::numeric_limits<int64_t>::max()) {
      RaisePeakBound(certificates.least_peak_once_any_order, PeakProof::kOrderCut,
                     BoundScope::kAnyOrder);
    } else {
      RaiseAnyOrderBound(idle_cost_ + least, OverheadProof::kOrderCut);
      RaiseBound(any_order_bound_, any_order_proof_, BoundScope::kAnyOrder);
    }
  }

  void AddMinCutOrder() {
    const OrderWithPeak& found = shared_->MinCutOrder(options_.work.orders);
    Offer(found.order);
    const int64_t own_peak = PeakOf(problem_, own_order_);
    // Planning in another order takes as long again.
    if (PeakOf(problem_, found.order) < own_peak - own_peak / kSameOrderParts) {
      orders_.push_back(found.order);
    }
  }

  // Searches for plans whose first runs have this order. In the graph's own order, also proves a
  // bound.
  Result<Done> SolveInOrder(const Runs& order, bool is_own) {
    if (is_own) {
      SearchOwnCurve();
    } else {
      TradeOffCurve curve(shared_, order);
      curve.Read(options_.budget, options_.work.curve, options_.enough);
      if (const auto* const best = curve.BestWithin(options_.budget)) Offer(best->runs);
    }
    if (IsDone() || IsNear(curve_->BoundWithin(options_.budget))) return Done{};
    const bool has_programs = HasMipSolver() && options_.work.programs > 0;
    if (!has_programs || problem_.op_count > kMaxProgramOps) return Done{};
    return problem_.others.count > 0 ? SolveBesideOthers(order) : SolveByProgram(order, is_own);
  }

  void SearchOwnCurve() {
    curve_->Read(options_.budget, options_.work.curve, options_.enough);
    TakeFromCurve();
    RaiseBound(curve_->BoundWithin(options_.budget), curve_->proof(), BoundScope::kOwnOrder);
    if (options_.is_order_free) return;
    RaisePeakBound(curve_->least_peak(), PeakProof::kMoments, BoundScope::kOwnOrder);
  }

  // Tells whether the plan is so near to a bound that further search is not worthwhile.
  bool IsNear(int64_t bound) const {
    const int64_t parts = problem_.op_count <= kOpsToProve
                              ? std::max(options_.work.curve.settled_parts, kProvenParts)
                              : options_.work.curve.settled_parts;
    return outcome_.runs && outcome_.overhead - bound <= problem_.total_cost / parts;
  }
  // A bound for the graph's own order doesn't apply to plans in other orders.
  bool IsNearEnough() const {
    return IsNear(options_.is_order_free ? any_order_bound_ : outcome_.lower_bound);
  }

  // Returns a lower bound on every plan's overhead: forced reruns, less the cost of unneeded
  // operations.
  int64_t least_added() const { return idle_cost_ + shared_->forced_cost(); }

  // Returns the share of `work` for a graph of this size: at least `least`, but never more than
  // `work`.
  int64_t ScaleWork(int64_t work, int64_t least) const {
    const int64_t full_ops = options_.work.full_ops;
    const int64_t share = work / full_ops * std::min<int64_t>(problem_.op_count, full_ops);
    return std::max(share, std::min(work, least));
  }

  // Adjusts the runs to the constraints. Returns whether they are a better plan.
  bool Offer(const Runs& runs) {
    curve_->Offer(runs);
    return TakeFromCurve();
  }

  // Takes the best plan on the curve if it is the best so far.
  bool TakeFromCurve() {
    const TradeOffCurve::PlanOnCurve* const best = curve_->BestWithin(options_.budget);
    if (best == nullptr || (outcome_.runs && outcome_.overhead <= best->overhead)) return false;
    outcome_.runs = best->runs;
    outcome_.overhead = best->overhead;
    outcome_.is_optimal = IsOptimal();
    return true;
  }

  void RaiseBound(int64_t bound, OverheadProof proof, BoundScope scope) {
    if (bound <= outcome_.lower_bound) return;
    outcome_.lower_bound = bound;
    outcome_.proof = proof;
    outcome_.scope = scope;
    outcome_.is_optimal = outcome_.runs && IsOptimal();
  }

  void RaiseAnyOrderBound(int64_t bound, OverheadProof proof) {
    if (bound <= any_order_bound_) return;
    any_order_bound_ = bound;
    any_order_proof_ = proof;
  }

  void RaisePeakBound(int64_t bytes, PeakProof proof, BoundScope scope) {
    if (Bytes(bytes) <= outcome_.least_peak.bytes) return;
    outcome_.least_peak = {Bytes(bytes), proof, scope};
    outcome_.is_infeasible = bytes > options_.budget;
  }

  // A plan in another order may be below the bound of the graph's own order. Then nothing is proven
  // yet.
  bool IsOptimal() const {
    return outcome_.overhead <= any_order_bound_ || outcome_.overhead == outcome_.lower_bound;
  }

  // Tells whether the search is over: no better plan is possible, or `enough` is settled.
  bool IsDone() const {
    if (outcome_.is_infeasible || IsSettled()) return true;
    if (!options_.is_order_free) return outcome_.is_optimal;
    return outcome_.runs && outcome_.overhead <= any_order_bound_;
  }

  // Tells whether it is known if a plan with an overhead of at most `enough` exists.
  bool IsSettled() const {
    if (!options_.enough) return false;
    if (outcome_.runs && outcome_.overhead <= *options_.enough) return true;
    const bool is_bound_for_all = !options_.is_order_free;
    return any_order_bound_ > *options_.enough ||
           (is_bound_for_all && outcome_.lower_bound > *options_.enough);
  }

  Result<Done> SolveByProgram(const Runs& order, bool is_own) {
    LoopLimits limits;
    limits.work = ScaleWork(options_.work.programs, kQuickWork.programs);
    if (problem_.op_count > kManyOps) limits.work /= kFewerPrograms;
    if (!is_own) limits.work /= 2;  // Other orders rarely help, and give no bound.
    limits.rounds = options_.work.rounds;
    if (options_.enough) {
      limits.enough = *options_.enough - idle_cost_ - shared_->forced_cost();
    }
    CKPLAN_ASSIGN_OR_RETURN(LoopOutcome loop,
                            SolveMomentLoop(shared_->unforced_graph(), shared_->unforced(), order,
                                            options_.budget, limits));
    outcome_.program_work += loop.work;
    const bool is_taken = loop.runs && Offer(*loop.runs);
    if (loop.exceeding) exceeding_.push_back(*std::move(loop.exceeding));
    if (is_own || is_taken) moments_ = loop.moments;
    if (!is_own) return Done{};
    RaiseBound(least_added() + loop.lower_bound, OverheadProof::kMoments, BoundScope::kOwnOrder);
    if (loop.is_infeasible && !options_.is_order_free) {
      RaisePeakBound(options_.budget + 1, PeakProof::kMoments, BoundScope::kOwnOrder);
    }
    return Done{};
  }

  // The program doesn't know what other micro-batches hold: gives it what the best plan leaves of
  // the budget, then bisects. What it proves about one micro-batch is no news.
  Result<Done> SolveBesideOthers(const Runs& order) {
    if (options_.work.programs <= kQuickWork.programs) return Done{};
    LoopLimits limits;
    limits.work = ScaleWork(options_.work.programs, kQuickWork.programs) / kProgramsBesideOthers;
    limits.rounds = options_.work.rounds;
    int64_t low = 0;
    int64_t high = options_.budget;
    int64_t left = outcome_.runs ? high - BytesOfOthers(problem_, *outcome_.runs) : high / 2;
    for (int64_t i = 0; i < kProgramsBesideOthers && !IsDone(); ++i) {
      CKPLAN_ASSIGN_OR_RETURN(
          const LoopOutcome loop,
          SolveMomentLoop(shared_->unforced_graph(), shared_->unforced(), order, left, limits));
      outcome_.program_work += loop.work;
      if (loop.runs) Offer(*loop.runs);
      const bool fits = !loop.runs || PeakOf(problem_, *loop.runs) <= options_.budget;
      (fits ? low : high) = left;
      left = low + (high - low) / 2;
    }
    return Done{};
  }

  // Searches for a bound for all plans, and for plans in orders that need less memory, even if the
  // best plan in the graph's own order is known.
  Result<Done> SolveInAnyOrder() {
    const bool is_known = outcome_.runs && outcome_.overhead <= any_order_bound_;
    if (is_known || outcome_.is_infeasible) return Done{};
    const std::vector<OpId> proven = proof_moments_;
    const bool is_one = proven.empty() || moments_.empty() || moments_ == proven;
    const int64_t work =
        ScaleWork(options_.work.any_order, kQuickWork.any_order) / (is_one ? 1 : 2);
    CKPLAN_RETURN_IF_ERROR(SolveInAnyOrder(proven, work));
    return moments_ == proven ? Done{} : SolveInAnyOrder(moments_, work);
  }

  Result<Done> SolveInAnyOrder(const std::vector<OpId>& moments, int64_t work) {
    if (moments.empty()) return Done{};
    LoopLimits limits;
    limits.work = work;
    limits.rounds = options_.work.rounds;
    CKPLAN_ASSIGN_OR_RETURN(const LoopOutcome loop,
                            SolveAnyOrderLoop(shared_->unforced_graph(), shared_->unforced(),
                                              own_order_, moments, options_.budget, limits));
    outcome_.program_work += loop.work;
    if (least_added() + loop.lower_bound > any_order_bound_) proof_moments_ = moments;
    RaiseAnyOrderBound(least_added() + loop.lower_bound, OverheadProof::kFreeMoments);
    if (loop.runs) Offer(*loop.runs);
    outcome_.is_optimal = outcome_.runs && IsOptimal();
    if (loop.is_infeasible && !outcome_.runs) {
      RaisePeakBound(options_.budget + 1, PeakProof::kFreeMoments, BoundScope::kAnyOrder);
    }
    return Done{};
  }

  void Anneal() {
    AnnealOptions options;
    options.rules = shared_->rules();
    options.free_order = options_.is_order_free;
    if (!exceeding_.empty()) AnnealExceeding(options);
    std::vector<Runs> starts;
    if (outcome_.runs) starts.push_back(*outcome_.runs);
    if (options_.is_order_free || starts.empty()) {
      for (const Runs& order : orders_) starts.push_back(order);
    }
    const Runs& nearest = curve_->plans().front().runs;
    if (!outcome_.runs && nearest != own_order_) starts.push_back(nearest);
    options.moves = exceeding_.empty() ? Moves() : Moves() / 2;
    if (!outcome_.runs && options.free_order) {
      // Within one order, there are fewer sequences to search for a first plan.
      AnnealOptions fixed_order_options = options;
      fixed_order_options.free_order = false;
      std::vector<Runs> own_starts = exceeding_;
      own_starts.push_back(own_order_);
      AnnealFrom(std::move(own_starts), fixed_order_options);
      if (outcome_.runs) starts.push_back(*outcome_.runs);
    }
    AnnealFrom(std::move(starts), options);
  }

  // Plans above the budget that cost little more than the bound may be nearer to the optimum than
  // the best known plan.
  void AnnealExceeding(AnnealOptions options) {
    std::vector<Runs> starts;
    for (int chain = 0; chain < kChains; ++chain) {
      starts.insert(starts.end(), exceeding_.begin(), exceeding_.end());
      if (outcome_.runs) starts.push_back(*outcome_.runs);
    }
    options.moves = Moves();
    options.seed = 1;  // For other moves than in the next search.
    AnnealFrom(std::move(starts), options);
  }

  void AnnealFrom(std::vector<Runs> starts, const AnnealOptions& options) {
    if (options.rules != nullptr) {
      for (Runs& start : starts) start = ConstrainedTo(*options.rules, start);
    }
    Offer(ckplan::Anneal(problem_, options_.budget, starts, options).runs);
  }

  // Returns the number of annealing moves: fewer if there is little to gain.
  int64_t Moves() const {
    int64_t most = ScaleWork(options_.work.moves, kNormalWork.moves);
    if (problem_.others.count > 0) most = std::max(most, kMovesWithoutProgram);
    // On large graphs, single moves improve little on the curve, and each takes longer.
    const int64_t moves =
        problem_.op_count <= kManyOps ? most : most / problem_.op_count * kManyOps / kFewerMoves;
    if (!outcome_.runs) return moves;
    const int64_t bound = options_.is_order_free ? any_order_bound_ : outcome_.lower_bound;
    const double worthwhile = static_cast<double>(problem_.total_cost) / kWorthwhileParts;
    const double gain = static_cast<double>(outcome_.overhead - bound) / worthwhile;
    return static_cast<int64_t>(static_cast<double>(moves) * std::clamp(gain, 0.05, 1.0));
  }

  // Among equally fast plans, takes the one with the lowest peak.
  void TakeMinPeak() {
    const TradeOffCurve::PlanOnCurve* const best = curve_->BestWithin(options_.budget);
    const bool is_as_good = best != nullptr && outcome_.runs && best->overhead == outcome_.overhead;
    if (is_as_good) outcome_.runs = best->runs;
  }

  // There are two lower bounds: for the graph's own order, and for any order. Reports the second if
  // it is at least as high, or if a plan in another order costs less than the first.
  void SettleBound() {
    TakeMinPeak();
    outcome_.moments = moments_;
    outcome_.proof_moments = proof_moments_;
    outcome_.any_order_bound = any_order_bound_;
    outcome_.any_order_proof = any_order_proof_;
    const bool is_below_own = outcome_.runs && outcome_.overhead < outcome_.lower_bound;
    if (outcome_.is_infeasible || (!is_below_own && any_order_bound_ < outcome_.lower_bound)) {
      return;
    }
    outcome_.lower_bound = any_order_bound_;
    outcome_.proof = any_order_proof_;
    outcome_.scope = BoundScope::kAnyOrder;
    outcome_.is_optimal = outcome_.runs && outcome_.overhead <= any_order_bound_;
  }

  BestProblem* const shared_;
  // The curve of the graph's own order. Plans in other orders are added, too.
  TradeOffCurve* const curve_;
  const RunProblem& problem_;
  const BestOptions& options_;
  const Runs own_order_;             // Without unneeded operations.
  int64_t idle_cost_ = 0;            // Minus the cost of unneeded operations, which plans save.
  std::vector<Runs> orders_;         // The graph's own order comes first.
  std::vector<Runs> exceeding_;      // From the programs over moments: see LoopOutcome.
  std::vector<OpId> moments_;        // From the loop that found the best plan, or from the own
                                     // order's loop.
  std::vector<OpId> proof_moments_;  // The moments that proved `any_order_bound_`.
  int64_t any_order_bound_ = 0;
  OverheadProof any_order_proof_ = OverheadProof::kRunOnce;
  BestOutcome outcome_;
};

}  // namespace

Result<BestOutcome> SolveBest(BestProblem* problem, const BestOptions& options) {
  return Solver(problem, options).Run();
}

Result<BestOutcome> SolveBest(const JointGraph& graph, const BestOptions& options) {
  BestProblem problem(graph);
  return SolveBest(&problem, options);
}

}  // namespace ckplan
