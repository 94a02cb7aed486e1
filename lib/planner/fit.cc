#include "lib/planner/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "lib/base/stop.h"
#include "lib/cost/cost_model.h"
#include "lib/planner/best_planner.h"
#include "lib/planner/planner.h"
#include "lib/planner/source.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

// Sizes are counted in multiples from here on: `count` times what they must be a multiple of.
constexpr int64_t kMaxCount = 1'000'000'000;
// A guess beyond what is known goes no further than this many times the largest that fits.
constexpr int64_t kMaxGrowth = 16;
// A model may take none of the smallest sizes, as of an image's height: powers of two are tried.
constexpr int64_t kMaxFirstCount = 4096;

constexpr double kNever = std::numeric_limits<double>::infinity();

// The model at one size.
struct SizedModel {
  Source source;
  Bytes constants;
  Bytes keep_all_peak;
  Cost step;

  Bytes need() const { return keep_all_peak + constants; }
  const TensorGraph& graph() const { return source.graph; }
};

SizedModel SizedModelOf(Source source, Optimizer optimizer) {
  SizedModel sized{std::move(source), Bytes(0), Bytes(0), Cost(0)};
  sized.constants = TotalConstants(sized.graph().constants(),
                                   OptimizerState(optimizer, sized.graph().optimized_bytes()));
  sized.keep_all_peak = KeepAllPeak(sized.graph());
  sized.step = sized.graph().forward_cost() + sized.graph().backward_cost();
  return sized;
}

// How much of what is allowed a count takes; it fits up to 1.
using Measure = std::function<Result<double>(int64_t count)>;

struct Measured {
  int64_t count = 0;
  double value = 0;
};

// Where the straight line through both reaches 1, rounded down; nothing if it never does.
std::optional<int64_t> CountAtOne(const Measured& a, const Measured& b) {
  const double slope = (b.value - a.value) / static_cast<double>(b.count - a.count);
  if (!std::isfinite(slope) || slope <= 0) return std::nullopt;
  const double count = static_cast<double>(a.count) + (1 - a.value) / slope;
  if (count >= static_cast<double>(kMaxCount)) return kMaxCount;
  return static_cast<int64_t>(std::floor(count));
}

// The largest count that fits, where that of `low` does, and the next one, which does not. Measures
// are nearly linear in the count, so the line through the last two is followed; where it misleads,
// gaps are halved.
struct Edge {
  Measured fits;
  std::optional<Measured> does_not;  // Absent if the largest of all counts fits.
};
Result<Edge> FindEdge(Measured low, const Measure& measure,
                      std::optional<int64_t> first_guess = std::nullopt) {
  std::optional<Measured> before;  // A second point for the line, as long as nothing is too large.
  std::optional<Measured> high;
  for (int round = 0;; ++round) {
    if (high ? high->count - low.count == 1 : low.count >= kMaxCount) return Edge{low, high};
    const std::optional<Measured>& other = high ? high : before;
    std::optional<int64_t> guess = other ? CountAtOne(low, *other) : std::nullopt;
    if (round == 0) guess = first_guess;
    // Nothing is known yet of what is above a guess that fits, but that it was the largest.
    if (round == 1 && first_guess && !high) guess = low.count + 1;
    // A line that is bent may lead to the same end again and again.
    const bool is_misled = high && round % 8 == 7;
    if (high && (!guess || is_misled)) guess = low.count + (high->count - low.count) / 2;
    const int64_t known = std::max({low.count, first_guess.value_or(1), int64_t{1}});
    const int64_t limit = high ? high->count - 1 : std::min(kMaxCount, known * kMaxGrowth);
    // The line is flat, or there is none yet.
    if (!guess) guess = before ? limit : low.count + 1;
    const int64_t count = std::clamp(*guess, low.count + 1, limit);
    CKPLAN_ASSIGN_OR_RETURN(const double value, measure(count));
    if (value > 1) {
      high = Measured{count, value};
    } else {
      before = low;
      low = {count, value};
    }
  }
}

double Ratio(Cost part, Cost whole) {
  return whole > Cost(0) ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                         : 0;
}

Cost EnoughOf(double percent, Cost step) {
  return Cost(static_cast<int64_t>(std::floor(static_cast<double>(step.count()) * percent / 100)));
}

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
    CKPLAN_ASSIGN_OR_RETURN(int64_t count, KeepingAll());
    for (const double percent : request_.added_percents) {
      CKPLAN_ASSIGN_OR_RETURN(count, ByPlans(percent, count));
    }
    return std::move(fit_);
  }

 private:
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
    if (const auto known = sizes_.find(count); known != sizes_.end()) return &known->second;
    if (refusals_.contains(count)) return nullptr;
    PlanRequest request = request_.plan;
    request.dims[fit_.dim] = count * request_.multiple_of;
    Result<Source> source = LoadSource(request_.path, request);
    if (source.ok()) {
      SizedModel sized = SizedModelOf(*std::move(source), request.optimizer);
      return &sizes_.emplace(count, std::move(sized)).first->second;
    }
    const ErrorCode code = source.error().code;
    if (code != ErrorCode::kInvalidInput && code != ErrorCode::kUnsupported) {
      return std::move(source).error();
    }
    refusals_.emplace(count, std::move(source).error());
    return nullptr;
  }

  Result<Measured> MeasuredAt(int64_t count, const Measure& measure) {
    CKPLAN_ASSIGN_OR_RETURN(const double value, measure(count));
    return Measured{count, value};
  }

  Result<double> NeedOf(int64_t count) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
    if (sized == nullptr) return kNever;
    return static_cast<double>(sized->need().count()) /
           static_cast<double>(request_.memory.count());
  }

  // What a plan in the model's order adds at least, in parts of what it may add.
  Result<double> BoundOf(int64_t count, double percent) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
    if (sized == nullptr || sized->constants >= request_.memory) return kNever;
    if (sized->need() <= request_.memory) return 0.0;
    const auto bound = OwnOrderBound(sized->graph(), request_.memory - sized->constants);
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
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge, FindEdge(low, need));
    AddRow({}, edge.fits.count, nullptr);
    return edge.fits.count;
  }

  // The largest count with a plan that adds at most so much; that of `low` has one, unless it is 0.
  Result<int64_t> ByPlans(double percent, int64_t low) {
    CKPLAN_ASSIGN_OR_RETURN(const int64_t guess, GuessFor(percent, low));
    std::optional<Plan> best;  // Of the largest count for which one was found.
    const Measure measure = [&](int64_t count) -> Result<double> {
      CKPLAN_ASSIGN_OR_RETURN(PlanWithin found, PlanAt(count, percent));
      if (found.plan) best = std::move(found.plan);
      if (!found.least_found) return kNever;
      return PartOf(percent, Ratio(*found.least_found, At(count).value()->step));
    };
    const FitRow& before = fit_.rows.back();
    const double part = low == 0 ? 0 : PartOf(percent, Ratio(before.overhead, before.step));
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge,
                            FindEdge({std::max(low, first_ - 1), part}, measure, guess));
    if (best) {
      AddRow(percent, edge.fits.count, &*best);
    } else {
      fit_.rows.push_back(before);
      fit_.rows.back().added_percent = percent;
    }
    return best ? edge.fits.count : low;
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
    CKPLAN_ASSIGN_OR_RETURN(const Edge edge, FindEdge(start, bound));
    // The row before has a plan for it already.
    return std::max(edge.fits.count, low + 1);
  }

  Result<PlanWithin> PlanAt(int64_t count, double percent) {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, At(count));
    if (sized == nullptr || sized->constants >= request_.memory) return PlanWithin();
    PlanRequest request = sized->source.request;
    request.total_budget = Budget::Of(request_.memory);
    const Cost enough = EnoughOf(percent, sized->step);
    if (request.algorithm == kBestAlgorithm) {
      return FindBestPlanWithin(sized->graph(), request, enough, limits_);
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
  void AddRow(std::optional<double> percent, int64_t count, const Plan* plan) {
    const SizedModel& sized = *At(count).value();
    FitRow row;
    row.added_percent = percent;
    row.size = count * request_.multiple_of;
    row.peak = plan != nullptr ? plan->figures.peak : sized.keep_all_peak;
    row.overhead = plan != nullptr ? plan->figures.overhead : Cost(0);
    row.constants = sized.constants;
    row.step = sized.step;
    if (const auto refusal = refusals_.find(count + 1); refusal != refusals_.end()) {
      row.model_limit = refusal->second.message;
    } else if (count == kMaxCount) {
      row.model_limit = "what it needs hardly depends on that dimension";
    }
    fit_.rows.push_back(std::move(row));
  }

  const FitRequest& request_;
  const SolveLimits& limits_;
  Fit fit_;
  int64_t first_ = 1;                    // The smallest count that the model takes.
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
