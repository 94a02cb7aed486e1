// Solves mixed-integer programs through the C interface of HiGHS.
#include <highs/interfaces/highs_c_api.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/planning/mip/mip.h"

namespace ckplan {
namespace {

// The status of HiGHS after running out of memory. Its C interface has no name for it.
constexpr HighsInt kModelStatusMemoryLimit = 18;

struct Destroy {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using Highs = std::unique_ptr<void, Destroy>;

HighsInt ClampToInt(int64_t limit) {
  return static_cast<HighsInt>(std::clamp<int64_t>(limit, 0, std::numeric_limits<HighsInt>::max()));
}

void SetBool(void* highs, const char* name, bool value) {
  CKPLAN_CHECK(Highs_setBoolOptionValue(highs, name, value) == kHighsStatusOk, name);
}
void SetInt(void* highs, const char* name, HighsInt value) {
  CKPLAN_CHECK(Highs_setIntOptionValue(highs, name, value) == kHighsStatusOk, name);
}
void SetDouble(void* highs, const char* name, double value) {
  CKPLAN_CHECK(Highs_setDoubleOptionValue(highs, name, value) == kHighsStatusOk, name);
}
void SetText(void* highs, const char* name, const char* value) {
  CKPLAN_CHECK(Highs_setStringOptionValue(highs, name, value) == kHighsStatusOk, name);
}

// Makes a solve repeatable: one thread, one seed, no clock, and explicitly named methods, because
// the defaults of HiGHS can depend on how it was built.
void SetRepeatable(void* highs) {
  SetBool(highs, "output_flag", false);
  SetInt(highs, "threads", 1);
  SetText(highs, "parallel", "off");
  SetInt(highs, "random_seed", 0);
  SetDouble(highs, "time_limit", kMipInfinity);
  SetInt(highs, "simplex_strategy", 1);  // The serial dual simplex method.
  SetText(highs, "mip_lp_solver", "simplex");
  // Used for analytic centres; the alternative calls BLAS.
  SetText(highs, "mip_ipm_solver", "ipx");
}

void SetLimits(void* highs, const MipLimits& limits, bool is_linear) {
  SetDouble(highs, "mip_rel_gap", limits.relative_gap);
  SetDouble(highs, "mip_abs_gap", limits.absolute_gap);
  SetDouble(highs, "mip_feasibility_tolerance", kMipTolerance);
  SetInt(highs, "mip_max_nodes", ClampToInt(limits.nodes));
  if (!is_linear) return;
  SetText(highs, "solver", "simplex");
  SetInt(highs, "simplex_iteration_limit", ClampToInt(limits.lp_iterations));
}

// The model as HiGHS takes it, row by row.
struct Arrays {
  std::vector<double> cost, lower, upper, row_lower, row_upper, coefficient;
  std::vector<HighsInt> integrality, row_begin, column;
};

Arrays Flatten(const MipModel& model) {
  Arrays arrays;
  for (const MipColumn& column : model.columns()) {
    arrays.cost.push_back(column.cost);
    arrays.lower.push_back(column.lower);
    arrays.upper.push_back(column.upper);
    arrays.integrality.push_back(column.is_integer ? kHighsVarTypeInteger
                                                   : kHighsVarTypeContinuous);
  }
  for (const MipRow& row : model.rows()) {
    arrays.row_lower.push_back(row.lower);
    arrays.row_upper.push_back(row.upper);
    arrays.row_begin.push_back(static_cast<HighsInt>(arrays.column.size()));
    for (const MipEntry& entry : row.entries) {
      arrays.column.push_back(entry.column);
      arrays.coefficient.push_back(entry.coefficient);
    }
  }
  return arrays;
}

// HiGHS itself accepts NaN, so check here.
bool IsNumeric(const MipModel& model) {
  const auto is_range = [](double lower, double upper) {
    return lower < kMipInfinity && upper > -kMipInfinity;  // False for NaN.
  };
  const auto is_column = [&](const MipColumn& column) {
    return std::isfinite(column.cost) && is_range(column.lower, column.upper);
  };
  const auto is_row = [&](const MipRow& row) {
    return is_range(row.lower, row.upper) &&
           std::all_of(row.entries.begin(), row.entries.end(),
                       [](const MipEntry& entry) { return std::isfinite(entry.coefficient); });
  };
  return std::all_of(model.columns().begin(), model.columns().end(), is_column) &&
         std::all_of(model.rows().begin(), model.rows().end(), is_row);
}

int64_t CountEntries(const MipModel& model) {
  int64_t count = 0;
  for (const MipRow& row : model.rows()) count += static_cast<int64_t>(row.entries.size());
  return count;
}

Result<Done> Pass(void* highs, const MipModel& model, bool is_linear) {
  if (CountEntries(model) > std::numeric_limits<HighsInt>::max()) {
    return MakeError(ErrorCode::kUnsupported,
                     "the mixed-integer program has too many entries for HiGHS");
  }
  const Arrays arrays = Flatten(model);
  const HighsInt status =
      !IsNumeric(model)
          ? kHighsStatusError
          : Highs_passMip(highs, static_cast<HighsInt>(arrays.cost.size()),
                          static_cast<HighsInt>(arrays.row_lower.size()),
                          static_cast<HighsInt>(arrays.column.size()), kHighsMatrixFormatRowwise,
                          kHighsObjSenseMinimize, 0, arrays.cost.data(), arrays.lower.data(),
                          arrays.upper.data(), arrays.row_lower.data(), arrays.row_upper.data(),
                          arrays.row_begin.data(), arrays.column.data(), arrays.coefficient.data(),
                          is_linear ? nullptr : arrays.integrality.data());
  if (status == kHighsStatusError) {
    return MakeError(
        ErrorCode::kInvalidInput,
        "the mixed-integer program has a number that HiGHS rejects: NaN, infinite, or too "
        "large");
  }
  return Done{};
}

std::vector<double> RoundIntegers(std::vector<double> values, const MipModel& model) {
  for (size_t j = 0; j < values.size(); ++j) {
    if (model.columns()[j].is_integer) values[j] = std::round(values[j]);
  }
  return values;
}

// The callback's inputs, and its results so far.
struct Interrupt {
  const MipModel& model;
  const MipLimits& limits;
  const MipOptions& options;
  const int64_t entries = CountEntries(model);
  int64_t iterations = 0;
  int64_t work = 0;
  std::vector<double> best;  // The best solution not yet passed to `is_worth_proving`.
  bool is_solved = false;    // What `is_solution_enough` returned.
  std::exception_ptr thrown;

  size_t columns() const { return model.columns().size(); }
};

// Tells whether a poll would throw Stopped now. No exception may pass through HiGHS.
bool StopIsRequested(int64_t work) {
  try {
    PollStop(work);
    return false;
  } catch (const Stopped&) {
    return true;
  }
}

// Shows the caller the best solution once it is near the bound. Returns true if the caller needs no
// proof for it. No exception may pass through HiGHS.
bool IsProofUnneeded(double primal_bound, double dual_bound, Interrupt* interrupt) {
  const MipOptions& options = interrupt->options;
  const bool is_near = primal_bound - dual_bound <= options.doubtful_gap;
  if (interrupt->best.empty() || !is_near) return false;
  const std::vector<double> best = std::exchange(interrupt->best, {});
  try {
    return !options.is_worth_proving(best);
  } catch (...) {
    interrupt->thrown = std::current_exception();
    return true;
  }
}

// Records a better solution. No exception may pass through HiGHS.
void RecordSolution(const double* values, Interrupt* interrupt) {
  const MipOptions& options = interrupt->options;
  try {
    std::vector<double> best =
        RoundIntegers({values, values + interrupt->columns()}, interrupt->model);
    // HiGHS may find more solutions before it can be interrupted.
    if (!interrupt->is_solved && options.is_solution_enough) {
      interrupt->is_solved = options.is_solution_enough(best);
    }
    if (options.is_worth_proving) interrupt->best = std::move(best);
  } catch (...) {
    interrupt->thrown = std::current_exception();
  }
}

// HiGHS calls this wherever it can be interrupted and, if `is_worth_proving` or
// `is_solution_enough` is set, for each better solution. `context` is the Interrupt.
void InterruptWhenSpent(int type, const char*, const HighsCallbackDataOut* out,
                        HighsCallbackDataIn* in, void* context) {
  auto& interrupt = *static_cast<Interrupt*>(context);
  if (type == kHighsCallbackMipImprovingSolution) {
    RecordSolution(out->mip_solution, &interrupt);
    return;
  }
  const bool is_mip = type == kHighsCallbackMipInterrupt;
  int64_t work = 1;
  if (is_mip) {
    const int64_t iterations = out->mip_total_lp_iterations;
    const bool is_root = out->mip_node_count <= 1;
    work = (is_root ? RootRoundWork(interrupt.columns(), interrupt.entries)
                    : NodeRoundWork(interrupt.columns())) +
           (iterations - interrupt.iterations) * IterationWork(interrupt.columns());
    interrupt.iterations = iterations;
    interrupt.work += work;
  }
  const MipLimits& limits = interrupt.limits;
  const bool is_spent =
      is_mip && (interrupt.iterations >= limits.lp_iterations || interrupt.work >= limits.work);
  const bool is_refused =
      is_mip && IsProofUnneeded(out->mip_primal_bound, out->mip_dual_bound, &interrupt);
  const auto& is_bound_enough = interrupt.options.is_bound_enough;
  const bool is_enough = is_mip && is_bound_enough && is_bound_enough(out->mip_dual_bound);
  const bool is_over = is_spent || is_refused || is_enough || interrupt.is_solved;
  in->user_interrupt = StopIsRequested(work) || is_over || interrupt.thrown ? 1 : 0;
}

void SetInterrupt(void* highs, Interrupt* interrupt) {
  CKPLAN_CHECK(Highs_setCallback(highs, InterruptWhenSpent, interrupt) == kHighsStatusOk,
               "HiGHS accepts a callback");
  std::vector<HighsInt> types = {kHighsCallbackSimplexInterrupt, kHighsCallbackMipInterrupt};
  if (interrupt->options.is_worth_proving || interrupt->options.is_solution_enough) {
    types.push_back(kHighsCallbackMipImprovingSolution);
  }
  for (const HighsInt type : types) {
    CKPLAN_CHECK(Highs_startCallback(highs, type) == kHighsStatusOk,
                 "HiGHS supports this callback type");
  }
}

double DoubleInfo(void* highs, const char* name) {
  double value = 0;
  CKPLAN_CHECK(Highs_getDoubleInfoValue(highs, name, &value) == kHighsStatusOk, name);
  return value;
}

HighsInt IntInfo(void* highs, const char* name) {
  HighsInt value = 0;
  CKPLAN_CHECK(Highs_getIntInfoValue(highs, name, &value) == kHighsStatusOk, name);
  return value;
}

// HiGHS reports nothing for a model without columns, so check each row here.
MipOutcome SolveWithoutColumns(const MipModel& model) {
  const std::vector<double> nothing;
  if (!model.IsFeasible(nothing)) {
    return {.status = MipStatus::kInfeasible, .bound = kMipInfinity};
  }
  return {.status = MipStatus::kOptimal, .bound = 0, .values = nothing, .objective = 0};
}

// Tells whether the bounds of the columns alone bound the cost from below.
bool IsCostBounded(const MipModel& model) {
  return std::all_of(model.columns().begin(), model.columns().end(), [](const MipColumn& column) {
    if (column.cost == 0) return true;
    return std::isfinite(column.cost > 0 ? column.lower : column.upper);
  });
}

Result<MipStatus> StatusOf(HighsInt model_status, const MipModel& model) {
  if (model_status == kModelStatusMemoryLimit) throw std::bad_alloc();
  switch (model_status) {
    case kHighsModelStatusModelEmpty:
    case kHighsModelStatusOptimal:
      return MipStatus::kOptimal;
    case kHighsModelStatusInfeasible:
      return MipStatus::kInfeasible;
    case kHighsModelStatusIterationLimit:
    case kHighsModelStatusSolutionLimit:  // Also the status for the node limit.
    case kHighsModelStatusInterrupt:
      return MipStatus::kStopped;
    case kHighsModelStatusUnboundedOrInfeasible:
      if (IsCostBounded(model)) return MipStatus::kInfeasible;
      [[fallthrough]];
    case kHighsModelStatusUnbounded:
      return MakeError(ErrorCode::kInvalidInput,
                       "the cost of the mixed-integer program has no minimum; bound its columns");
    default:
      return MipStatus::kStopped;  // Numerical trouble: HiGHS proved nothing.
  }
}

std::optional<std::vector<double>> ReadValues(void* highs, const MipModel& model, bool is_linear) {
  if (IntInfo(highs, "primal_solution_status") != kHighsSolutionStatusFeasible) return {};
  std::vector<double> values(model.columns().size());
  Highs_getSolution(highs, values.data(), nullptr, nullptr, nullptr);
  return is_linear ? values : RoundIntegers(std::move(values), model);
}

MipOutcome ReadOutcome(void* highs, MipStatus status, const MipModel& model, bool is_linear) {
  MipOutcome outcome{.status = status};
  outcome.lp_iterations = std::max(0, IntInfo(highs, "simplex_iteration_count"));
  if (status == MipStatus::kInfeasible) {
    outcome.bound = kMipInfinity;
    return outcome;
  }
  outcome.values = ReadValues(highs, model, is_linear);
  if (outcome.values) outcome.objective = model.Objective(*outcome.values);
  if (!is_linear) {
    outcome.bound = DoubleInfo(highs, "mip_dual_bound");
  } else if (status == MipStatus::kOptimal) {
    outcome.bound = outcome.objective;
  }
  return outcome;
}

}  // namespace

bool HasMipSolver() { return true; }

Result<MipOutcome> SolveMip(const MipModel& model, const MipLimits& limits,
                            const MipOptions& options) {
  if (model.columns().empty()) return SolveWithoutColumns(model);
  const bool is_linear =
      options.relax || std::none_of(model.columns().begin(), model.columns().end(),
                                    [](const MipColumn& column) { return column.is_integer; });
  Interrupt interrupt{model, limits, options};
  const Highs highs(Highs_create());
  SetRepeatable(highs.get());
  SetLimits(highs.get(), limits, is_linear);
  CKPLAN_RETURN_IF_ERROR(Pass(highs.get(), model, is_linear));
  SetInterrupt(highs.get(), &interrupt);
  if (options.start != nullptr && !is_linear) {
    CKPLAN_CHECK(options.start->size() == model.columns().size(),
                 "a start has a value for every column");
    // HiGHS warns about an infeasible start and continues.
    Highs_setSolution(highs.get(), options.start->data(), nullptr, nullptr, nullptr);
  }
  Highs_run(highs.get());  // Ignore the returned code: the model's status says more.
  if (interrupt.thrown) std::rethrow_exception(interrupt.thrown);
  if (Highs_getModelStatus(highs.get()) == kHighsModelStatusSolveError) {
    // The solution misses HiGHS's own tolerance: nothing is proven, and no figures are valid.
    return MipOutcome{.work = interrupt.work};
  }
  CKPLAN_ASSIGN_OR_RETURN(const MipStatus status,
                          StatusOf(Highs_getModelStatus(highs.get()), model));
  MipOutcome outcome = ReadOutcome(highs.get(), status, model, is_linear);
  // HiGHS may run on for a while after its last check of the limits.
  const int64_t unseen = std::max<int64_t>(0, outcome.lp_iterations - interrupt.iterations);
  outcome.work = interrupt.work + unseen * IterationWork(interrupt.columns());
  return outcome;
}

}  // namespace ckplan
