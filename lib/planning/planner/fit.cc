#include "lib/planning/planner/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/dim_expression.h"
#include "lib/base/stop.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/outside.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/fit_row.h"
#include "lib/planning/planner/largest_size.h"
#include "lib/planning/planner/sized_models.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// A model may not take the smallest sizes, for example for the height of an image. Powers of two up
// to this one are tried.
constexpr int64_t kMaxFirstCount = 4096;

// Neither what the allocator wastes nor plans of published algorithms grow evenly with the size, so
// this many sizes are tried beyond the first one that does not fit.
constexpr int64_t kTriedBeyond = 16;

// Checks that the model takes another batch than the one in its file.
Result<Done> TryBatch(const FitRequest& request, int64_t in_file) {
  PlanRequest twice = request.plan;
  twice.batch = 2 * in_file;
  CKPLAN_RETURN_IF_ERROR(request.read(twice));
  return Done{};
}

// Returns the dimension to fit, or an empty string for the batch fixed in the file.
Result<std::string> OnlyOpenDim(const FitRequest& request) {
  const Result<Source> source = request.read(request.plan);
  if (source.ok()) {
    if (source->constant_batch) {
      CKPLAN_RETURN_IF_ERROR(TryBatch(request, *source->constant_batch));
      return std::string();
    }
    if (request.plan.batch > 0) {
      return Error{
          ErrorCode::kUsage,
          fmt::format("the batch of {} cannot be both fixed and fitted", source->identity.name),
          {},
          {"leave out", {{"batch", ""}}}};
    }
    const DimSizes& bound = source->request.dims;
    if (bound.empty()) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{} has no open dimension to fit", source->identity.name));
    }
    const std::string& name = bound.begin()->first;
    return Error{ErrorCode::kUsage,
                 fmt::format("every dimension of {} has a size; leave out the one to fit",
                             source->identity.name),
                 {},
                 {"for example", {{"dims", name}}}};
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

// Returns the error for a model that supports no size of the fitted dimension. A dimension given by
// an expression follows from others, so it can't be fitted, and binding the others wouldn't help.
Error NotFitted(const std::string& dim, Error error) {
  const auto variables = FindDimVariables(dim);
  for (const Remedy::Setting& setting : error.remedy.settings) {
    const std::string about = setting.value.substr(0, setting.value.rfind('='));
    if (setting.name != "dims" || !variables) continue;
    if (about != dim && !variables->contains(about)) continue;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--dim: {} follows from other dimensions; fit one of those", dim));
  }
  return error;
}

Bytes AllocatorIn(const Accounting& accounting) {
  const auto line = std::find_if(accounting.outside.begin(), accounting.outside.end(),
                                 [](const MemoryLine& one) { return one.name == "allocator"; });
  return line == accounting.outside.end() ? Bytes(0) : line->bytes;
}

// Returns how many bytes the allocator gives back when memory is short, for keep-all.
double GivenBack(const SizedModel& sized) {
  const TrainingStep step = sized.source.step();
  PlanRequest unlimited = sized.source.request;
  unlimited.memory = {};
  const Accounting free =
      AccountFor({step, unlimited, sized.source.buffers}, step.KeepAll(), KeepAllPeak(step));
  if (sized.source.request.reserve) return 0;
  return static_cast<double>((AllocatorIn(free) - AllocatorIn(sized.keep_all)).count());
}

// A count is a size divided by `multiple_of`.
class FitSearch {
 public:
  // Keeps references to all but the dimension.
  FitSearch(const FitRequest& request, const ReadAtSize& read, const std::string& dim,
            const SolveLimits& limits)
      : request_(request),
        limits_(limits),
        models_(read, request.plan, dim, request.multiple_of, limits) {
    fit_.is_burnt_batch = dim.empty();
    fit_.dim = dim.empty() ? "batch" : dim;
  }

  // Returns nothing if a size that would be reported is not as derived.
  Result<std::optional<Fit>> Run() && {
    CKPLAN_RETURN_IF_ERROR(Search());
    if (!IsAsRead()) return std::optional<Fit>();
    return std::optional(std::move(fit_));
  }

 private:
  Result<Done> Search() {
    CKPLAN_ASSIGN_OR_RETURN(const SizedModel* first, First());
    fit_.model = first->source.identity;
    fit_.plan = first->source.request;
    if (fit_.is_burnt_batch) {
      fit_.plan.batch = 0;
    } else {
      fit_.plan.dims.erase(fit_.dim);
    }
    fit_.warnings = first->source.warnings;
    CKPLAN_ASSIGN_OR_RETURN(const int64_t count, KeepingAll());
    CKPLAN_RETURN_IF_ERROR(AddRowsByPlans(count));
    CKPLAN_RETURN_IF_ERROR(FindLimits());
    if (fit_.BestRow()) return Done{};
    fit_.smallest_size = first_ * request_.multiple_of;
    CKPLAN_ASSIGN_OR_RETURN(
        fit_.shortage,
        FindConstantsShortage(request_.read, first->source, memory() - OutsideInMemory(fit_.plan)));
    if (!fit_.shortage && first->least_need > memory()) fit_.optimizer_need = first->least_need;
    return Done{};
  }

  bool IsAsRead() const {
    std::set<int64_t> counts = {first_};
    for (const FitRow& row : fit_.rows) {
      counts.insert(row.size / request_.multiple_of);
      counts.insert(row.next_size / request_.multiple_of);
    }
    return std::all_of(counts.begin(), counts.end(),
                       [this](int64_t count) { return models_.IsAsRead(count, request_.read); });
  }

  Bytes memory() const { return request_.plan.memory.bytes; }

  // Unset if nothing fits above the keep-all size.
  using Row = Result<std::optional<FitRow>>;

  // Adds the rows with plans. `kept` is the count that fits with keep-all.
  Result<Done> AddRowsByPlans(int64_t kept) {
    const std::vector<double>& percents = request_.added_percents;
    std::vector<std::optional<FitRow>> rows;
    for (const double percent : percents) {
      CKPLAN_ASSIGN_OR_RETURN(std::optional<FitRow> row, ByPlans(percent, kept));
      rows.push_back(std::move(row));
    }
    for (size_t i = 0; i < percents.size(); ++i) {
      std::optional<FitRow> row = rows[i];
      const FitRow known = RowWithin(percents[i], kept);
      if (!row || row->size <= known.size) row = known;
      // A search with a higher limit may have found a larger size whose plan adds as little.
      for (size_t j = i + 1; j < percents.size(); ++j) {
        const std::optional<FitRow>& other = rows[j];
        if (!other || other->size <= row->size) continue;
        if (other->overhead <= MostAdded(percents[i], other->step)) row = other;
      }
      row->added_percent = percents[i];
      row->is_proven = false;
      fit_.rows.push_back(*std::move(row));
    }
    return Done{};
  }

  // Sets the limit of each row. If a row that may add more time has a larger size, time limits this
  // one.
  Result<Done> FindLimits() {
    int64_t largest = 0;
    int64_t next = 0;  // The size after the largest one.
    for (const FitRow& row : fit_.rows) {
      largest = std::max(largest, row.size);
      next = std::max(next, row.next_size);
    }
    std::optional<bool> has_slower_plan;  // For `next`.
    for (FitRow& row : fit_.rows) {
      if (!row.model_limit.empty()) {
        row.limit = FitLimit::kModel;
      } else if (row.size > 0 && row.size < largest && row.added_percent) {
        row.limit = FitLimit::kTime;
      } else if (row.size > 0 && row.added_percent) {
        if (!has_slower_plan) {
          CKPLAN_ASSIGN_OR_RETURN(has_slower_plan,
                                  HasPlan(&models_, next / request_.multiple_of, limits_));
        }
        row.limit = *has_slower_plan ? FitLimit::kTime : FitLimit::kMemory;
      }
    }
    return Done{};
  }

  // Tells whether keep-all adds at most this. It can add time under constraints.
  bool IsWithin(double percent, int64_t kept) {
    if (kept == 0) return true;
    const SizedModel& sized = *models_.At(kept).value();
    return sized.forced <= MostAdded(percent, sized.step);
  }

  // Returns the row with the largest size among known rows that add at most this. Later rows add
  // more than earlier ones, except perhaps the first.
  FitRow RowWithin(double percent, int64_t kept) {
    if (!IsWithin(percent, kept)) return {};
    const FitRow& keeping_all = fit_.rows.front();
    const FitRow& before = fit_.rows.back();
    return before.size > keeping_all.size ? before : keeping_all;
  }

  // Returns the model at the smallest size that it supports.
  Result<const SizedModel*> First() {
    std::optional<Error> refusal;
    for (first_ = 1; first_ <= kMaxFirstCount; first_ *= 2) {
      CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(first_));
      if (sized != nullptr) return sized;
      if (!refusal) refusal = models_.RefusalOf(first_);
    }
    return *refusal;
  }

  // Returns the largest count that fits, or 0.
  Result<int64_t> KeepingAll() {
    SizeSearch search;
    search.measure = [this](int64_t count) -> Result<double> {
      CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
      if (sized == nullptr) return std::numeric_limits<double>::infinity();
      const double need = static_cast<double>(sized->need().count());
      if (sized->need() <= memory()) return need / static_cast<double>(memory().count());
      // What the allocator gives back when memory is short is not linear in the count.
      return (need + GivenBack(*sized)) / static_cast<double>(memory().count());
    };
    CKPLAN_ASSIGN_OR_RETURN(const double value, search.measure(first_));
    if (value > 1) {
      fit_.rows.emplace_back();
      return 0;
    }
    CKPLAN_ASSIGN_OR_RETURN(search.most, MostKeepingAll());
    search.look_beyond = kTriedBeyond;
    CKPLAN_ASSIGN_OR_RETURN(const LargestSize edge, FindLargestSize({first_, value}, search));
    fit_.rows.push_back(RowOf(edge.fits.count, edge.fits.count + 1, nullptr));
    fit_.rows.back().is_proven = edge.is_last;
    return edge.fits.count;
  }

  // Returns the largest count that would fit if the allocator wasted nothing. The smallest count
  // always fits.
  Result<int64_t> MostKeepingAll() {
    SizeSearch search;
    search.measure = [this](int64_t count) -> Result<double> {
      CKPLAN_ASSIGN_OR_RETURN(const SizedModel* sized, models_.At(count));
      if (sized == nullptr) return std::numeric_limits<double>::infinity();
      const Bytes least = sized->need() - AllocatorIn(sized->keep_all);
      return static_cast<double>(least.count()) / static_cast<double>(memory().count());
    };
    CKPLAN_ASSIGN_OR_RETURN(const double value, search.measure(first_));
    CKPLAN_ASSIGN_OR_RETURN(const LargestSize edge, FindLargestSize({first_, value}, search));
    return edge.fits.count;
  }

  // Returns the row of the largest count above `kept` with a plan that adds at most this much time.
  // At `kept`, keep-all fits, unless `kept` is 0.
  Row ByPlans(double percent, int64_t kept) {
    // Reruns that are forced at one size are forced at larger sizes, too.
    if (!IsWithin(percent, kept)) return std::optional<FitRow>();
    // Whole searches of `best` take too long for quick effort, and for trying extra sizes.
    const bool is_by_best = request_.plan.algorithm == kBestAlgorithm;
    const bool has_curve =
        is_by_best && HasOneCurve(models_.At(first_).value()->source.step(), request_.plan);
    const bool searches = !has_curve || request_.plan.effort != SearchEffort::kQuick;
    const FitAllowance allowance = {memory(), percent, is_by_best ? 0 : kTriedBeyond, has_curve,
                                    searches};
    CKPLAN_ASSIGN_OR_RETURN(
        const std::optional<FitPlan> found,
        FindLargestPlan(&models_, allowance, std::max(kept, first_ - 1), limits_, &tried_));
    if (!found) return std::optional<FitRow>();
    return std::optional(RowOf(found->count, found->next, &found->plan));
  }

  // `next` does not fit. If `plan` is null, the row is keep-all's.
  FitRow RowOf(int64_t count, int64_t next, const Plan* plan) {
    const SizedModel& sized = *models_.At(count).value();
    FitRow row;
    row.size = count * request_.multiple_of;
    row.next_size = next * request_.multiple_of;
    row.peak = plan != nullptr ? plan->figures.peak : sized.keep_all_peak;
    row.overhead = plan != nullptr ? plan->figures.overhead : sized.forced;
    if (plan != nullptr && plan->figures.offload) row.host_peak = plan->figures.offload->host_peak;
    row.constants = sized.constants;
    row.accounting = plan != nullptr ? AccountForPlan(sized.source, *plan) : sized.keep_all;
    row.step = sized.step;
    if (const auto refusal = models_.RefusalOf(next)) {
      row.model_limit = refusal->message;
      row.is_refused = true;
    } else if (count == kMaxCount) {
      row.model_limit = "memory hardly depends on it";
    }
    return row;
  }

  const FitRequest& request_;
  const SolveLimits& limits_;
  Fit fit_;
  int64_t first_ = 1;  // The smallest count that the model supports.
  SizedModels models_;
  TriedSizes tried_;
};

Result<Done> CheckFitRequest(const FitRequest& request) {
  if (!request.plan.workspaces.empty()) {
    return Error{ErrorCode::kUsage,
                 "a workspaces file is for one size, but fit tries many",
                 {},
                 {"leave out", {{"workspaces", ""}}}};
  }
  if (request.plan.cost_model.empty()) return Done{};
  CKPLAN_ASSIGN_OR_RETURN(const CostModel cost, ParseCostModel(request.plan.cost_model));
  if (cost.kind != CostKind::kFile) return Done{};
  return Error{ErrorCode::kUsage,
               "costs from a file were measured at one size, but fit tries many",
               {},
               {"use", {{"cost_model", "flops:DEVICE"}}}};
}

}  // namespace

std::string_view NameOf(FitLimit limit) {
  constexpr std::string_view kNames[] = {"memory", "model", "time"};
  return kNames[static_cast<size_t>(limit)];
}

std::optional<size_t> Fit::BestRow() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size == 0) continue;
    if (!best || rows[i].throughput() > rows[*best].throughput()) best = i;
  }
  return best;
}

std::optional<size_t> Fit::NextRow() const {
  const auto distance = [&](size_t row) {
    return std::abs(rows[row].added_percent.value() - kAddedPercentWithoutBudget);
  };
  std::optional<size_t> next;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size == 0) continue;
    const bool is_first = !next || !rows[*next].added_percent;
    if (is_first || distance(i) < distance(*next)) next = i;
  }
  return next;
}

PlanRequest RequestOf(const FitRequest& request, const Fit& fit, const FitRow& row) {
  PlanRequest plan = request.plan;
  std::erase_if(plan.dims, [&](const auto& dim) {  // Sizes for other models of a settings file.
    return plan.optional_dims.contains(dim.first) && !fit.plan.dims.contains(dim.first);
  });
  (fit.is_burnt_batch ? plan.batch : plan.dims[fit.dim]) = row.size;
  return plan;
}

Result<Fit> FindFit(const FitRequest& request, const SolveLimits& limits) {
  CKPLAN_RETURN_IF_ERROR(CheckFitRequest(request));
  return CatchStop([&]() -> Result<Fit> {
    const StopScope scope(limits.stop);
    std::string dim = request.dim;
    if (dim.empty()) {
      CKPLAN_ASSIGN_OR_RETURN(dim, OnlyOpenDim(request));
    }
    const ReadAtSize read_each = [&request](const PlanRequest& plan, const std::string&) {
      return request.read(plan);
    };
    Result<std::optional<Fit>> fit =
        FitSearch(request, request.read_size ? request.read_size : read_each, dim, limits).Run();
    if (fit.ok() && !*fit) fit = FitSearch(request, read_each, dim, limits).Run();
    if (fit.ok()) return **std::move(fit);
    if (fit.error().code != ErrorCode::kUsage) return std::move(fit).error();
    return NotFitted(dim, std::move(fit).error());
  });
}

}  // namespace ckplan
