#include "lib/planning/algorithms/best/curve/trade_off_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/algorithms/best/curve/cut_rounding.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {
namespace {

// A network has at most this many nodes, unless it has a single moment.
constexpr int64_t kMaxNodes = 1'000'000;

// The maximum number of rounds that add moments, and of moments added per round.
constexpr int kMomentRounds = 8;
constexpr int kMomentsAtOnce = 4;
// Cuts at multiples of the prices to find the plan that shows which moment is missing.
constexpr int kCutsForMoment = 8;

// Cuts for a bound without plans.
constexpr int kCutsForProof = 24;

// Stop looking for prices once the bound is this many times closer to the best mix of choices than
// a settled budget's plan must be.
constexpr double kPriceParts = 5;

// If even the bound adds this many steps, hardly any plan fits.
constexpr int64_t kHopelessSteps = 2;
constexpr double kDearestSteps = 3;

// Multiples of the prices: the first, the growth of the gap to the next, and the largest.
constexpr double kFirstMultiple = 1.002;
constexpr double kMultipleGrowth = 1.004;
constexpr double kLargestMultiple = 16;
constexpr double kMinMultiple = 0.995;
constexpr double kNearMultiples = 1e-7;

// If one value takes more operations than this to recompute, plans rarely pay off.
constexpr size_t kMaxCurveAncestors = 64;

// The eviction rules by how often each gave the best plan on the models of testdata/models.
constexpr std::array kEvictions = {EvictionRule{1, 1, 2, true, kMaxCurveAncestors},
                                   EvictionRule{2, 1, 2, true, kMaxCurveAncestors},
                                   EvictionRule{1, 1, 1, true, kMaxCurveAncestors},
                                   EvictionRule{1, 2, 2, true, kMaxCurveAncestors},
                                   EvictionRule{0, 1, 1, false, kMaxCurveAncestors},
                                   EvictionRule{0, 1, 1, true, kMaxCurveAncestors},
                                   EvictionRule{0, 1, 2, true, kMaxCurveAncestors},
                                   EvictionRule{2, 1, 1, true, kMaxCurveAncestors}};
constexpr std::array kDeepEvictions = {EvictionRule{1, 1, 2, true}};
constexpr size_t kUnguided = 2;
// With other micro-batches, how often a rule's budget for one of them is halved.
constexpr int kEvictionHalvings = 6;

// Rules for budgets on the way to other answers.
constexpr size_t kEvictionsOnTheWay = 2;

// Up to this many operations, all rules together take no longer than the other parts.
constexpr size_t kFewCurveOps = 500;

// Up to this many operations, try all rules if the few above find nothing.
constexpr size_t kAllRulesOps = 2'000;

// A plan that adds less than a step divided by this has few reruns.
constexpr int64_t kFewRerunsParts = 50;

// ReadWithin stops when the gap is the order's peak divided by this.
constexpr int64_t kNearPeakParts = 256;

// Larger graphs get fewer budgets, and less work for each.
constexpr size_t kSomeOpsOnCurve = 1'500;
constexpr size_t kManyOpsOnCurve = 20'000;

// A single budget may take longer than one of many. With other micro-batches, no program follows,
// so cuts and evictions get the work of normal effort.
CurveWork WorkForOneBudget(CurveWork work, size_t ops, const OtherMicroBatches& others) {
  if (others.count > 0) {
    work.cuts = std::max(work.cuts, kNormalCurve.cuts);
    work.moments = std::max(work.moments, kNormalCurve.moments);
    work.evictions = std::max(work.evictions, kNormalCurve.evictions);
    work.scaled_cuts = std::max(work.scaled_cuts, kNormalCurve.scaled_cuts);
  }
  if (ops > kManyOpsOnCurve) {
    work.moments = std::min(work.moments, 4);
    work.evictions = std::min(work.evictions, 4);
  }
  return work;
}

CurveWork WorkForSize(CurveWork work, size_t ops) {
  if (ops > kSomeOpsOnCurve) {
    work.budgets = std::min(work.budgets, 8);
  }
  if (ops <= kManyOpsOnCurve) return work;
  work.moments = std::min(work.moments, 3);
  work.cuts = std::min(work.cuts, 8);
  work.evictions = std::min(work.evictions, 1);
  work.scaled_cuts = std::min(work.scaled_cuts, 4);
  work.readings = std::min(work.readings, 2);
  return work;
}

bool HasAliases(const JointGraph& graph) {
  return std::any_of(graph.values().begin(), graph.values().end(),
                     [](const Value& value) { return !value.alias_of.is_none(); });
}

bool IsAnyAboveZero(const std::vector<double>& prices) {
  return std::any_of(prices.begin(), prices.end(), [](double price) { return price > 0; });
}

}  // namespace

TradeOffCurve::TradeOffCurve(BestProblem* problem, Runs order)
    : problem_(problem),
      order_(std::move(order)),
      has_aliases_(HasAliases(problem->graph())),
      simulator_(problem->graph()),
      flat_simulator_(problem->flat()) {
  const RunProblem& flat = problem->flat();
  for (const OpId op : order_) once_ += flat.cost[At(op.index())];
  least_added_ = once_ - flat.total_cost + problem->forced_cost();
  peak_moment_ = static_cast<int32_t>(simulator_.Run(order_).value().peak_step);
  least_peak_ = problem->certificates().least_peak_any_plan;
  moments_ = {peak_moment_};
  Offer(order_);
}

std::vector<CurvePoint> TradeOffCurve::Points() const {
  std::vector<CurvePoint> points;
  for (const PlanOnCurve& plan : plans_) points.push_back({Bytes(plan.peak), Cost(plan.overhead)});
  return points;
}

const TradeOffCurve::PlanOnCurve* TradeOffCurve::BestWithin(int64_t budget) const {
  const auto above = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const PlanOnCurve& plan) { return plan.peak > budget; });
  return above == plans_.begin() ? nullptr : &*std::prev(above);
}

const TradeOffCurve::PlanOnCurve& TradeOffCurve::LeastWithin(int64_t most_added) const {
  const auto first = std::find_if(plans_.begin(), plans_.end(), [&](const PlanOnCurve& plan) {
    return plan.overhead <= most_added;
  });
  return first == plans_.end() ? plans_.back() : *first;
}

int64_t TradeOffCurve::BoundWithin(int64_t budget) const {
  int64_t bound = 0;
  for (const BoundLine& line : lines_) bound = std::max(bound, line.CostWithin(budget));
  return least_added_ + bound;
}

int64_t TradeOffCurve::MinPeakWithin(int64_t most_added) const {
  int64_t least = least_peak_;
  for (const BoundLine& line : lines_) {
    least = std::max(least, line.MinBudgetFor(most_added - least_added_));
  }
  return least;
}

TradeOffCurve::Question TradeOffCurve::Ask(int64_t budget, const CurveWork& work) const {
  return {budget, problem_->flat().total_cost / work.settled_parts};
}

bool TradeOffCurve::IsSettled(const Question& question) const {
  const PlanOnCurve* const best = BestWithin(question.budget);
  const int64_t bound = BoundWithin(question.budget);
  if (question.enough) {
    return bound > *question.enough || (best != nullptr && best->overhead <= *question.enough);
  }
  return best != nullptr && best->overhead - bound <= question.tolerance;
}

bool TradeOffCurve::Offer(const Runs& runs) {
  const RunRules* const rules = problem_->rules();
  const Runs constrained = rules == nullptr ? runs : ConstrainedTo(*rules, runs);
  bool is_taken = OfferOne(constrained);
  // As they are, the runs may recompute memory that an alias still holds.
  if (has_aliases_) is_taken |= OfferOne(RerunAliases(problem_->graph(), constrained));
  return is_taken;
}

bool TradeOffCurve::OfferOne(Runs runs) {
  const Result<Simulation> simulation = simulator_.Run(runs);
  CKPLAN_CHECK(simulation.ok(), "cuts and evictions make valid plans");
  const int64_t peak = simulation->peak.count() + BytesOfOthers(problem_->flat(), runs);
  const int64_t overhead = simulation->cost.count() - problem_->flat().total_cost;
  last_peak_ = peak;
  if (problem_->rules() != nullptr && !Satisfies(*problem_->rules(), runs)) return false;
  const auto at = std::find_if(plans_.begin(), plans_.end(),
                               [&](const PlanOnCurve& plan) { return plan.peak > peak; });
  if (at != plans_.begin() && std::prev(at)->overhead <= overhead) return false;
  // Plans with at least as much memory and time are superseded.
  const auto is_superseded = [&](const PlanOnCurve& plan) {
    return plan.peak >= peak && plan.overhead >= overhead;
  };
  plans_.erase(std::remove_if(plans_.begin(), plans_.end(), is_superseded), plans_.end());
  const auto place = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const PlanOnCurve& plan) { return plan.peak > peak; });
  plans_.insert(place, {peak, overhead, std::move(runs)});
  return true;
}

void TradeOffCurve::Rebuild() {
  const RunProblem& problem = problem_->unforced();
  const bool is_first = network_ == nullptr;
  network_ = std::make_unique<NestedNetwork>(problem, order_, moments_);
  master_ = std::make_unique<PriceMaster>(network_->KeepAll());
  if (is_first) least_peak_ = std::max(least_peak_, network_->MinBytes(0));
  for (const auto& [budget, known] : known_prices_) {
    std::vector<double> prices;
    for (const int32_t moment : moments_) {
      const auto found = known.find(moment);
      prices.push_back(found == known.end() ? 0 : found->second);
    }
    CutAt(prices, NestedNetwork::Ties::kBreak);
    OfferExpanded();
  }
}

std::vector<int64_t> TradeOffCurve::WholePrices(const std::vector<double>& prices) const {
  constexpr double kMost = static_cast<double>(int64_t{1} << NestedNetwork::kMaxPriceBits);
  std::vector<int64_t> rounded;
  for (const double price : prices) {
    const double scaled = std::ldexp(price, network_->price_shift());
    rounded.push_back(static_cast<int64_t>(std::clamp(scaled, 0.0, kMost)));
  }
  return rounded;
}

void TradeOffCurve::CutAt(const std::vector<double>& prices, NestedNetwork::Ties ties) {
  PollStop();
  lines_.push_back(network_->Cut(WholePrices(prices), ties));
  last_choice_ = network_->Choice();
  master_->Add(last_choice_);
}

bool TradeOffCurve::OfferExpanded() {
  return Offer(RunsOfCut(problem_->flat(), order_, *network_));
}

// Returns whether it found prices at which plans may fit.
bool TradeOffCurve::FindPrices(const Question& question, int cuts) {
  const int64_t budget = question.budget;
  std::vector<int64_t> room;
  for (size_t i = 0; i < moments_.size(); ++i) room.push_back(budget - network_->fixed_bytes(i));
  const double enough = static_cast<double>(question.tolerance) / kPriceParts;
  for (int cut = 0; cut <= cuts; ++cut) {
    master_->Solve(room, kDearestSteps * static_cast<double>(once_));
    const int64_t bound = BoundWithin(budget) - least_added_;
    if (bound > kHopelessSteps * once_) return false;
    if (master_->value() - static_cast<double>(bound) <= enough) break;
    if (cut == cuts || IsSettled(question)) break;
    CutAt(master_->prices(), NestedNetwork::Ties::kBreak);
    OfferExpanded();
  }
  if (!IsAnyAboveZero(master_->prices())) return false;
  std::map<int32_t, double>& known = known_prices_[budget];
  known.clear();
  for (size_t i = 0; i < moments_.size(); ++i) {
    if (master_->prices()[i] > 0) known[moments_[i]] = master_->prices()[i];
  }
  return true;
}

bool TradeOffCurve::FitsAtMoments(int64_t budget) const {
  for (size_t i = 0; i < moments_.size(); ++i) {
    if (last_choice_.bytes[i] + network_->fixed_bytes(i) > budget) return false;
  }
  return true;
}

// Cuts at multiples of the prices, to approach the smallest multiple whose cut `fits`.
void TradeOffCurve::CutAtMultiples(const std::vector<double>& prices, int cuts,
                                   const std::function<bool()>& fits) {
  const auto fits_at = [&](double multiple) {
    std::vector<double> raised = prices;
    for (double& price : raised) price *= multiple;
    CutAt(raised, NestedNetwork::Ties::kBreak);
    return fits();
  };
  double low = kMinMultiple;
  double high = 0;
  double growth = kMultipleGrowth;
  int cut = 0;
  for (double at = kFirstMultiple; cut < cuts && high == 0 && at <= kLargestMultiple; ++cut) {
    if (fits_at(at)) {
      high = at;
    } else {
      low = at;
      at *= growth;
      growth *= growth;
    }
  }
  if (high == 0) return;
  for (; cut < cuts && high - low > kNearMultiples; ++cut) {
    const double middle = (low + high) / 2;
    (fits_at(middle) ? high : low) = middle;
  }
}

bool TradeOffCurve::HasMomentAt(int32_t position) const {
  return std::binary_search(moments_.begin(), moments_.end(), position);
}

// Returns where a plan that fits the budget at all moments exceeds it most, and by how much.
std::optional<std::pair<int32_t, int64_t>> TradeOffCurve::FindMissingMoment(int64_t budget,
                                                                            int cuts) {
  std::optional<Runs> fitting;
  const std::vector<double> prices = master_->prices();
  CutAtMultiples(prices, cuts, [&] {
    if (!FitsAtMoments(budget)) return false;
    fitting = RunsOfCut(problem_->flat(), order_, *network_);
    Offer(*fitting);
    return true;
  });
  if (!fitting) return std::nullopt;
  const StepView view = ViewSteps(problem_->graph(), order_, *fitting);
  const int64_t left = budget - BytesOfOthers(problem_->flat(), *fitting);
  const std::optional<size_t> top = TopAbove(view, left, [&](size_t step) {
    return view.position[step] < static_cast<int32_t>(order_.size()) &&
           !HasMomentAt(view.position[step]);
  });
  if (!top) return std::nullopt;
  return std::pair(view.position[*top], view.bytes[*top] - left);
}

bool TradeOffCurve::AddMoments(const std::map<int32_t, int64_t>& excess, const CurveWork& work) {
  std::vector<std::pair<int64_t, int32_t>> most_first;
  for (const auto& [moment, bytes] : excess) most_first.emplace_back(-bytes, moment);
  std::sort(most_first.begin(), most_first.end());
  bool is_any = false;
  const int64_t nodes_of_one = network_->node_count() / static_cast<int64_t>(moments_.size());
  for (size_t i = 0; i < std::min<size_t>(most_first.size(), kMomentsAtOnce); ++i) {
    const auto count = static_cast<int64_t>(moments_.size()) + 1;
    if (count > work.moments || count * nodes_of_one > kMaxNodes) break;
    const int32_t moment = most_first[i].second;
    moments_.insert(std::upper_bound(moments_.begin(), moments_.end(), moment), moment);
    is_any = true;
  }
  return is_any;
}

// Adds moments until the cuts' plans for these budgets fit, or there are enough moments. With
// several budgets, each round considers every other one.
void TradeOffCurve::PickMoments(const std::vector<Question>& questions, const CurveWork& work) {
  if (network_ == nullptr) Rebuild();
  const size_t stride = questions.size() > 1 ? 2 : 1;
  for (int round = 0; round < kMomentRounds; ++round) {
    std::map<int32_t, int64_t> excess;
    for (size_t i = 0; i < questions.size(); ++i) {
      const Question& question = questions[i];
      if (question.budget < least_peak_ || IsSettled(question)) continue;
      if (!FindPrices(question, work.cuts) || IsSettled(question)) continue;
      if (static_cast<int>(moments_.size()) >= work.moments) continue;
      if (i % stride != static_cast<size_t>(round) % stride) continue;
      const auto missing = FindMissingMoment(question.budget, kCutsForMoment);
      if (missing) excess[missing->first] += missing->second;
    }
    if (!AddMoments(excess, work)) return;
    Rebuild();
  }
}

// Evicts by one rule, guided by the last cut or by nothing, and offers the plans. Returns whether
// there is one. With other micro-batches, the budget that is left for one depends on what the plan
// saves: as little as the cut if all else is dropped after the loss, or else it is bisected.
bool TradeOffCurve::EvictBy(const EvictionRule& rule, int64_t budget,
                            const std::vector<bool>& kept) {
  const RunProblem& flat = problem_->flat();
  EvictionRule now = rule;
  const auto evict = [&](int64_t left) {
    const std::optional<Runs> runs = EvictedAround(flat, order_, left, now, kept, &flat_simulator_);
    if (runs) Offer(*runs);
    return runs.has_value();
  };
  if (flat.others.count == 0) return evict(budget);
  if (!kept.empty()) {
    now.drops_at_loss = true;
    evict(budget - network_->BytesOfOthers());
    now.drops_at_loss = false;
  }
  if (!evict(budget)) return false;
  if (last_peak_ <= budget) return true;
  int64_t low = budget / (flat.others.count + 1);  // A micro-batch saves at most its peak.
  int64_t high = budget;
  for (int i = 0; i < kEvictionHalvings; ++i) {
    const int64_t middle = low + (high - low) / 2;
    (evict(middle) && last_peak_ > budget ? high : low) = middle;
  }
  return true;
}

// Evicts with the first few rules, guided by the last cut, and with a few unguided ones, until the
// question is settled.
void TradeOffCurve::EvictAt(const Question& question, bool has_prices, const CurveWork& work) {
  const auto most = static_cast<size_t>(work.evictions);
  const size_t rules = question.is_read ? most : std::min(most, kEvictionsOnTheWay);
  if (rules == 0) return;
  bool has_any = false;
  const auto try_rules = [&](std::span<const EvictionRule> tried, const std::vector<bool>& kept) {
    for (const EvictionRule& rule : tried) {
      has_any |= EvictBy(rule, question.budget, kept);
      if (IsSettled(question)) return;
    }
  };
  const std::span<const EvictionRule> all = kEvictions;
  if (has_prices) {
    const auto base = static_cast<size_t>(
        std::lower_bound(moments_.begin(), moments_.end(), peak_moment_) - moments_.begin());
    try_rules(all.first(std::min(rules, all.size())),
              network_->FindKeptAt(network_->DearestLevel(base)));
  }
  if (IsSettled(question) || (rules == 1 && (has_any || !question.is_read))) return;
  try_rules(all.first(std::min(rules, kUnguided)), {});
  // Near the lowest peak, few rules find a plan.
  if (!has_any && order_.size() <= kManyOpsOnCurve) try_rules(kDeepEvictions, {});
  const bool is_small = work.has_all_rules && order_.size() <= kFewCurveOps;
  if (!question.is_read || (has_any && !is_small) || IsSettled(question)) return;
  if (problem_->flat().others.count > 0) return;
  const std::optional<Runs> runs =
      BestEviction(problem_->flat(), order_, question.budget, FirstRuns::kKeepOrder,
                   order_.size() <= kAllRulesOps ? EvictionRules() : all);
  if (runs) Offer(*runs);
}

// With other micro-batches, drops what the last cut does not keep after the loss.
void TradeOffCurve::EvictAroundCut(int64_t budget) {
  const std::vector<bool> kept = network_->FindKeptAt(network_->DearestLevel(0));
  const int64_t left = budget - network_->BytesOfOthers();
  for (EvictionRule rule : std::span(kEvictions).first(kEvictionsOnTheWay)) {
    rule.drops_at_loss = true;
    const std::optional<Runs> runs =
        EvictedAround(problem_->flat(), order_, left, rule, kept, &flat_simulator_);
    if (runs) Offer(*runs);
  }
}

void TradeOffCurve::Round(const Question& question, const CurveWork& work) {
  const int64_t budget = question.budget;
  if (budget < least_peak_ || IsSettled(question)) return;
  const bool has_prices = FindPrices(question, work.cuts);
  const std::vector<double> prices = master_->prices();
  if (has_prices) CutAt(prices, NestedNetwork::Ties::kKeep);
  if (IsSettled(question)) return;
  EvictAt(question, has_prices, work);
  if (IsSettled(question)) return;
  if (has_prices && question.is_read) {
    CutAtMultiples(prices, work.scaled_cuts, [&] {
      OfferExpanded();
      const bool fits = last_peak_ <= budget;
      if (problem_->flat().others.count > 0) EvictAroundCut(budget);
      return fits;
    });
  }
  const PlanOnCurve* const best = BestWithin(budget);
  if (best == nullptr || IsSettled(question) || !work.drops_spare) return;
  Offer(WithoutSpareReruns(problem_->flat(), Runs(best->runs), budget));
}

void TradeOffCurve::Trace(const CurveWork& asked) {
  const CurveWork work = WorkForSize(asked, order_.size());
  if (network_ == nullptr) Rebuild();
  const int64_t high = Fastest().peak;
  const int64_t low = std::min(least_peak_, high);
  std::vector<Question> questions;
  for (int i = 1; i <= work.budgets; ++i) {
    questions.push_back(Ask(high - (high - low) / work.budgets * i, work));
  }
  PickMoments(questions, work);
  std::reverse(questions.begin(), questions.end());
  for (const Question& question : questions) {
    Round(question, work);
  }
}

void TradeOffCurve::Read(int64_t budget, const CurveWork& asked, std::optional<int64_t> enough) {
  const CurveWork work = WorkForOneBudget(asked, order_.size(), problem_->flat().others);
  Question question = Ask(budget, work);
  question.enough = enough;
  question.is_read = true;
  Answer(question, work);
}

void TradeOffCurve::Answer(const Question& question, const CurveWork& work) {
  int64_t& answered = answered_[question.budget];
  if (answered >= work.settled_parts || IsSettled(question)) return;
  PickMoments({question}, work);
  Round(question, work);
  // A search for just enough, or for any plan, may have ended early.
  if (question.is_read && !question.enough) answered = work.settled_parts;
}

void TradeOffCurve::Prove(int64_t budget) {
  if (network_ == nullptr) Rebuild();
  if (budget < least_peak_ || !FindPrices({budget, 0}, kCutsForProof)) return;
  CutAt(master_->prices(), NestedNetwork::Ties::kKeep);
}

// Reads where the bound allows less than `most_added` by as much as plans are above the bound, or
// halfway between the lowest peak reached and the largest budget without such a plan.
void TradeOffCurve::ReadWithin(int64_t most_added, const CurveWork& asked) {
  const CurveWork work = WorkForSize(asked, order_.size());
  const int64_t near = Fastest().peak / kNearPeakParts;
  int64_t refused = MinPeakWithin(most_added) - 1;
  std::optional<int64_t> above_bound;
  // On large graphs, plans near the lowest peak have the most reruns and take longest to find.
  if (order_.size() > kManyOpsOnCurve && most_added > kHopelessSteps * once_) return;
  for (int reading = 0; reading < work.readings; ++reading) {
    const PlanOnCurve& reached = LeastWithin(most_added);
    refused = std::max(refused, MinPeakWithin(most_added) - 1);
    if (reached.overhead > most_added || reached.peak - refused <= near + 1) return;
    if (!above_bound) above_bound = reached.overhead - BoundWithin(reached.peak);
    int64_t budget = MinPeakWithin(most_added - *above_bound);
    // Equal layers make plans come in steps: the next one may be far above.
    if (reading > 1) budget = std::max(budget, refused + near * (int64_t{1} << reading) / 2);
    if (budget <= refused || budget > reached.peak - near) {
      budget = refused + (reached.peak - refused) / 2;
    }
    Question question = Ask(budget, work);
    // Little is recomputed near the largest peak, so more work costs little there.
    question.is_read = most_added - least_added_ <= once_ / kFewRerunsParts;
    Answer(question, work);
    const PlanOnCurve* const best = BestWithin(budget);
    if (best != nullptr) above_bound = best->overhead - BoundWithin(budget);
    if (best == nullptr || best->overhead > most_added) refused = budget;
  }
}

}  // namespace ckplan
