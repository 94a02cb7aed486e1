#include "lib/planner/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/cost/cost_model.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble_joint.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/find_edge.h"
#include "lib/planner/joint_planner.h"
#include "lib/planner/planner.h"
#include "lib/planner/source.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

// A model may take none of the smallest sizes, as of an image's height: powers of two are tried.
constexpr int64_t kMaxFirstCount = 4096;

// As EdgeSearch::noise: what the plans add that are found for neighbouring sizes jumps as much as
// it grows over such a part of the size.
constexpr double kNoiseOfPlans = 0.02;

constexpr double kNever = std::numeric_limits<double>::infinity();

// The model at one size.
struct SizedModel {
  Source source;
  Bytes constants;
  Bytes keep_all_peak;
  Cost forced;  // What keeping all that may be kept adds.
  Cost step;

  Bytes need() const { return keep_all_peak + constants; }
  std::optional<Cost> Bound(Bytes budget) const {
    return source.joint ? OwnOrderBound(*source.joint, budget)
                        : OwnOrderBound(source.graph, budget);
  }
};

// Of all plans that obey, the one that keeps most.
PlanRequest KeepAllRequest(PlanRequest request) {
  request.algorithm = "keep-all";
  request.effort = PlanRequest().effort;
  request.order = PlanRequest().order;
  return request;
}

Result<SizedModel> SizedModelOf(Source source, const SolveLimits& limits) {
  SizedModel sized{std::move(source), Bytes(0), Bytes(0), Cost(0), Cost(0)};
  const Source& of = sized.source;
  sized.constants =
      TotalConstants(ConstantsOf(of), OptimizerState(of.request.optimizer, OptimizedBytes(of)));
  sized.keep_all_peak = BaselinePeak(of);
  sized.step = of.joint ? of.joint->cost() : of.graph.forward_cost() + of.graph.backward_cost();
  if (of.request.recompute.empty()) return sized;
  CKPLAN_ASSIGN_OR_RETURN(const Plan plan, MakePlan(of, KeepAllRequest(of.request), limits));
  sized.keep_all_peak = plan.figures.peak;
  sized.forced = plan.figures.overhead;
  return sized;
}

struct NeedAndTime {
  Bytes peak;
  Cost overhead;
};

// Of the steps of a plan for another size of the model; an error if they are none for this one.
Result<NeedAndTime> Simulated(const Source& source, const Schedule& steps) {
  if (!source.joint) {
    CKPLAN_ASSIGN_OR_RETURN(const Simulation simulation, Simulator(source.graph).Run(steps));
    return NeedAndTime{simulation.peak, simulation.overhead};
  }
  CKPLAN_ASSIGN_OR_RETURN(const RunSimulation simulation,
                          RunSimulator(*source.joint).Run(RunsOf(steps)));
  return NeedAndTime{simulation.peak, simulation.cost - source.joint->cost()};
}

double Ratio(Cost part, Cost whole) {
  return whole > Cost(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                         : 0;
}

Cost EnoughOf(double percent, Cost step) {
  return Cost(static_cast<int64_t>(std::floor(static_cast<double>(step.count()) * percent / 100)));
}

// Counts are sizes in multiples of what they must be a multiple of.
class FitSearch {
 public:
  FitSearch(const FitRequest& request, const SolveLimits& limits)
      : request_(request), limits_(limits) {}

  Result<Fit> Run() {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* first, First());
    fit_.model = first->source.identity;
    fit_.plan = first->source.request;
    fit_.plan.dims.erase(fit_.dim);
    fit_.warnings = first->source.warnings;
    CKPLAN_ASSIGN_OR_RETURN(const int64_t count, KeepingAll());
    CKPLAN_RETURN_IF_ERROR(AddRowsByPlans(count));
    return std::move(fit_);
  }

 private:
  // The largest count for which a search has found a plan.
  struct Found {
    int64_t count = 0;
    double value = 0;  // What it adds, in parts of what it may add.
    std::optional<Plan> plan;
  };
  using Row = Result<std::optional<FitRow>>;  // Nothing: no size above that of keeping everything.

  // The rows of plans, which do not depend on each other; `kept` fits if everything is kept.
  Result<Done> AddRowsByPlans(int64_t kept) {
    const std::vector<double>& percents = request_.added_percents;
    std::vector<std::optional<Row>> rows(percents.size());
    std::atomic<size_t> next = 0;
    const auto search = [&] {
      const StopScope scope(limits_.stop);
      // Rows of more added time take longer: they come first.
      for (size_t i = next++; i < percents.size(); i = next++) {
        const size_t row = percents.size() - 1 - i;
        rows[row] = ByPlans(percents[row], kept);
      }
    };
    InTwoThreads(search);
    for (size_t i = 0; i < percents.size(); ++i) {
      CKPLAN_ASSIGN_OR_RETURN(std::optional<FitRow> row, std::move(*rows[i]));
      const FitRow known = RowWithin(percents[i], kept);
      if (!row || row->size <= known.size) row = known;
      row->added_percent = percents[i];
      fit_.rows.push_back(*std::move(row));
    }
    return Done{};
  }

  // Whether keeping everything adds no more than that.
  bool IsWithin(double percent, int64_t kept) {
    if (kept == 0) return true;
    const SizedModel& sized = *At(kept).value();
    return sized.forced <= EnoughOf(percent, sized.step);
  }

  // The row of the largest size of those that are known and add no more: each row but the first
  // adds less than those that follow.
  FitRow RowWithin(double percent, int64_t kept) {
    if (!IsWithin(percent, kept)) return {};
    const FitRow& keeping_all = fit_.rows.front();
    const FitRow& before = fit_.rows.back();
    return before.size > keeping_all.size ? before : keeping_all;
  }

  // With quick effort plans of `best` need little memory; what other algorithms may use is limited
  // for one of them.
  void InTwoThreads(const std::function<void()>& search) const {
    const bool is_small =
        request_.plan.algorithm == kBestAlgorithm && request_.plan.effort == SearchEffort::kQuick;
    std::future<void> other;
    try {
      if (is_small) other = std::async(std::launch::async, search);
    } catch (const std::system_error&) {  // No thread is to be had.
    }
    search();
    if (other.valid()) other.get();
  }

  // The model at the smallest size that it takes.
  Result<const SizedModel*> First() {
    fit_.dim = request_.dim;
    if (fit_.dim.empty()) {
      CKPLAN_ASSIGN_OR_RETURN(fit_.dim, OnlyOpenDim());
    }
    std::optional<Error> refusal;
    for (first_ = 1; first_ <= kMaxFirstCount; first_ *= 2) {
      CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(first_));
      if (sized != nullptr) return sized;
      if (!refusal) refusal = refusals_.at(first_);
    }
    return *refusal;
  }

  Result<std::string> OnlyOpenDim() const {
    const Result<Source> source = LoadSource(request_.path, request_.plan);
    if (source.ok()) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{} has no open dimension whose size could be sought",
                                   source->identity.name));
    }
    Error error = source.error();
    std::vector<std::string> open;
    for (const Remedy::Setting& setting : error.remedy.settings) {
      if (setting.name == "dims") open.push_back(setting.value.substr(0, setting.value.rfind('=')));
    }
    if (open.size() == 1 && error.remedy.settings.size() == 1) return open.front();
    if (!open.empty()) {
      error.remedy = {"bind all but the one to fit, for example with",
                      {{"dims", open.front() + "=..."}}};
    }
    return error;
  }

  // Null if the model takes no such size; `refusals_` then says why.
  Result<const SizedModel*> At(int64_t count) {
    const std::lock_guard lock(sizes_mutex_);
    if (const auto known = sizes_.find(count); known != sizes_.end()) return &known->second;
    if (refusals_.contains(count)) return nullptr;
    PlanRequest request = request_.plan;
    request.dims[fit_.dim] = count * request_.multiple_of;
    Result<Source> source = LoadSource(request_.path, request);
    if (source.ok()) {
      CKPLAN_ASSIGN_OR_RETURN(SizedModel sized, SizedModelOf(*std::move(source), limits_));
      return &sizes_.emplace(count, std::move(sized)).first->second;
    }
    const ErrorCode code = source.error().code;
    if (code != ErrorCode::kInvalidInput && code != ErrorCode::kUnsupported) {
      return std::move(source).error();
    }
    refusals_.emplace(count, std::move(source).error());
    return nullptr;
  }

  using Measure = std::function<Result<double>(int64_t count)>;

  static Result<Measured> MeasuredAt(int64_t count, const Measure& measure) {
    CKPLAN_ASSIGN_OR_RETURN(const double value, measure(count));
    return Measured{count, value};
  }

  Result<double> NeedOf(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
    if (sized == nullptr) return kNever;
    return ShareOfMemory(sized->need());
  }

  // What a plan in the model's order adds at least, in parts of what it may add. Where plans may
  // have another order it is no bound, but the search begins there as well.
  Result<double> BoundOf(int64_t count, double percent) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
    if (sized == nullptr || sized->constants >= request_.memory) return kNever;
    if (sized->need() <= request_.memory) return 0.0;
    const auto bound = sized->Bound(request_.memory - sized->constants);
    if (!bound) return kNever;
    return PartOf(percent, Ratio(*bound, sized->step));
  }

  // Returns the count that fits, 0 if none does.
  Result<int64_t> KeepingAll() {
    const Measure need = [this](int64_t count) { return NeedOf(count); };
    CKPLAN_ASSIGN_OR_RETURN(const Measured low, MeasuredAt(first_, need));
    FitRow row;
    if (low.value > 1) {
      fit_.rows.push_back(row);
      return 0;
    }
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge, FindEdge({low, {}}, {need}));
    fit_.rows.push_back(RowOf(edge.fits.count, nullptr));
    return edge.fits.count;
  }

  // The largest count above `low` with a plan that adds at most so much; keeping everything is one
  // for `low`, unless it is 0.
  Row ByPlans(double percent, int64_t low) {
    // What must run again does so for larger sizes too.
    if (!IsWithin(percent, low)) return std::optional<FitRow>();
    CKPLAN_ASSIGN_OR_RETURN(const int64_t guess, GuessFor(percent, low));
    Found found;
    EdgeSearch search;
    search.first_guess = guess;
    search.noise = kNoiseOfPlans;
    search.measure = [&](int64_t count) { return SearchAt(count, percent, &found); };
    search.reach = [&](int64_t fits) { return ReachOf(found.plan->schedule, fits, percent); };
    const Measured start = {std::max(low, first_ - 1), 0};
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge, FindEdge({start, {}}, search));
    if (!found.plan) return std::optional<FitRow>();
    if (edge.fits.count > found.count) {
      // The steps of a plan for fewer reach the edge; the row is what a search at the edge finds.
      CKPLAN_ASSIGN_OR_RETURN(const double value, search.measure(edge.fits.count));
      const Measured does_not = {edge.fits.count, value};
      if (value > 1) {
        CKPLAN_RETURN_IF_ERROR(FindEdge({{found.count, found.value}, does_not}, {search.measure}));
      }
    }
    return std::optional(RowOf(found.count, &*found.plan));
  }

  // Returns what the best plan that is found adds, in parts of what it may add.
  Result<double> SearchAt(int64_t count, double percent, Found* found) {
    CKPLAN_ASSIGN_OR_RETURN(PlanWithin within, PlanAt(count, percent));
    if (!within.least_found) return kNever;
    const double value = PartOf(percent, Ratio(*within.least_found, At(count).value()->step));
    if (within.plan) *found = {count, value, std::move(within.plan)};
    return value;
  }

  // The largest count for which the steps of a plan, which fits for one, are a plan as well.
  Result<int64_t> ReachOf(const Schedule& steps, int64_t fits, double percent) {
    const Measure measure = [&](int64_t count) -> Result<double> {
      CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
      if (sized == nullptr) return kNever;
      const Result<NeedAndTime> simulated = Simulated(sized->source, steps);
      if (!simulated.ok()) return kNever;  // The model has other nodes at that size.
      return std::max(PartOf(percent, Ratio(simulated->overhead, sized->step)),
                      ShareOfMemory(simulated->peak + sized->constants));
    };
    CKPLAN_ASSIGN_OR_RETURN(const Measured start, MeasuredAt(fits, measure));
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge, FindEdge({start, {}}, {measure}));
    return edge.fits.count;
  }

  double ShareOfMemory(Bytes need) const {
    return static_cast<double>(need.count()) / static_cast<double>(request_.memory.count());
  }

  // What is added, as a part of what may be added; nothing may be added to nothing.
  static double PartOf(double percent, double share) {
    if (percent > 0) return 100 * share / percent;
    return share > 0 ? kNever : 0;
  }

  // The largest count whose bound allows a plan.
  Result<int64_t> GuessFor(double percent, int64_t low) {
    const Measure bound = [this, percent](int64_t count) { return BoundOf(count, percent); };
    CKPLAN_ASSIGN_OR_RETURN(const Measured start, MeasuredAt(std::max(low, first_), bound));
    if (start.value > 1) return std::max(low + 1, first_);
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge, FindEdge({start, {}}, {bound}));
    return std::max(edge.fits.count, low + 1);
  }

  Result<PlanWithin> PlanAt(int64_t count, double percent) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
    if (sized == nullptr || sized->constants >= request_.memory) return PlanWithin();
    PlanRequest request = sized->source.request;
    request.total_budget = Budget::Of(request_.memory);
    const Cost enough = EnoughOf(percent, sized->step);
    if (request.algorithm == kBestAlgorithm) {
      return sized->source.joint
                 ? FindJointPlanWithin(*sized->source.joint, request, enough, limits_)
                 : FindBestPlanWithin(sized->source.graph, request, enough, limits_);
    }
    Result<Plan> plan = MakePlan(sized->source, request, limits_);
    if (!plan.ok()) {
      if (plan.error().code == ErrorCode::kInfeasible) return PlanWithin();
      return std::move(plan).error();
    }
    PlanWithin found;
    found.least_found = plan->figures.overhead;
    if (plan->figures.overhead <= enough) found.plan = *std::move(plan);
    return found;
  }

  // Without a plan everything is kept.
  FitRow RowOf(int64_t count, const Plan* plan) {
    const SizedModel& sized = *At(count).value();
    FitRow row;
    row.size = count * request_.multiple_of;
    row.peak = plan != nullptr ? plan->figures.peak : sized.keep_all_peak;
    row.overhead = plan != nullptr ? plan->figures.overhead : sized.forced;
    row.constants = sized.constants;
    row.step = sized.step;
    const std::lock_guard lock(sizes_mutex_);
    if (const auto refusal = refusals_.find(count + 1); refusal != refusals_.end()) {
      row.model_limit = refusal->second.message;
    } else if (count == kMaxCount) {
      row.model_limit = "what it needs hardly depends on that dimension";
    }
    return row;
  }

  const FitRequest& request_;
  const SolveLimits& limits_;
  Fit fit_;
  int64_t first_ = 1;  // The smallest count that the model takes.
  std::mutex sizes_mutex_;
  std::map<int64_t, SizedModel> sizes_;  // By count.
  std::map<int64_t, Error> refusals_;    // Likewise.
};

Result<Done> CheckFitRequest(const FitRequest& request) {
  if (IsGraphFile(request.path)) {
    return MakeError(ErrorCode::kUsage,
                     "the sizes of a graph file are fixed; name a model with an open dimension");
  }
  if (request.plan.cost_model.empty()) return Done{};
  CKPLAN_ASSIGN_OR_RETURN(const CostModel cost, ParseCostModel(request.plan.cost_model));
  if (cost.kind != CostKind::kFile) return Done{};
  return Error{ErrorCode::kUsage,
               "costs from a file were measured at one size, and fit tries many",
               {},
               {"use", {{"cost_model", "flops:DEVICE"}}}};
}

}  // namespace

std::optional<size_t> Fit::BestRow() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size == 0) continue;
    if (!best || rows[i].throughput() > rows[*best].throughput()) best = i;
  }
  return best;
}

PlanRequest RequestOf(const FitRequest& request, const Fit& fit, const FitRow& row) {
  PlanRequest plan = request.plan;
  plan.dims[fit.dim] = row.size;
  plan.total_budget = Budget::Of(request.memory);
  return plan;
}

Result<Fit> FindFit(const FitRequest& request, const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckFitRequest(request));
  return UnlessStopped([&]() -> Result<Fit> {
    const StopScope scope(limits.stop);
    return FitSearch(request, limits).Run();
  });
}

}  // namespace ckplan
