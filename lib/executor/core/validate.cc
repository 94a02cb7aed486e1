#include "lib/executor/core/validate.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "lib/executor/core/buffer_memory.h"
#include "lib/executor/core/buffer_watch.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/profile.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {

namespace {

class Validator {
 public:
  Validator(Backend& backend, const StepGraph& step, ConstantStore& constants, Runner& runner,
            const ValidateOptions& options)
      : backend_(backend),
        step_(step),
        constants_(constants),
        runner_(runner),
        options_(options),
        reference_(step.graph) {}

  Result<ValidationReport> Validate(const PlacedProgram& keep_all, const PlacedProgram& plan) {
    report_.parameters = static_cast<int64_t>(constants_.trained().size());
    CKPLAN_RETURN_IF_ERROR(Prove(keep_all, "keeping everything", report_.keep_all));
    if (!has_failed()) CKPLAN_RETURN_IF_ERROR(Prove(plan, "the plan", report_.plan));
    if (!has_failed()) CKPLAN_RETURN_IF_ERROR(Time(keep_all, plan));
    return std::move(report_);
  }

 private:
  bool has_failed() const { return !report_.failures.empty(); }
  void Fail(std::string message) {
    report_.failures.push_back(MakeError(ErrorCode::kCheckFailed, std::move(message)));
  }

  Result<Done> Prove(const PlacedProgram& run, std::string_view which, RunFigures& figures) {
    figures.predicted_peak = run.predicted_peak;
    figures.arena_bytes = run.arena_bytes;
    figures.predicted_host_peak = run.predicted_host_peak;
    figures.host_bytes = run.host_bytes;
    CKPLAN_RETURN_IF_ERROR(RunInArena(run, which, figures));
    if (has_failed()) return Done{};
    CKPLAN_RETURN_IF_ERROR(RunCounting(run, which, figures));
    if (!has_failed()) ComparePeaks(which, figures);
    return Done{};
  }

  // Runs with a poisoned arena, under a BufferWatch.
  Result<Done> RunInArena(const PlacedProgram& run, std::string_view which, RunFigures& figures) {
    auto arena = ArenaFor(backend_, run, /*poisons=*/true);
    if (!arena.ok()) return RecordPlanFault(arena.error(), which);
    BufferWatch watch(backend_, step_, constants_, reference_);
    const Result<double> loss = runner_.Run(run.program, **arena, &watch);
    if (!loss.ok()) return RecordPlanFault(loss.error(), which);
    figures.loss = *loss;
    figures.arena_peak = (*arena)->peak();
    figures.arena_used = (*arena)->used();
    figures.host_peak = (*arena)->host_peak();
    CompareGradients(which, "in the arena");
    return Done{};
  }

  Result<Done> RunCounting(const PlacedProgram& run, std::string_view which, RunFigures& figures) {
    CKPLAN_ASSIGN_OR_RETURN(
        const bool had_room,
        TryCounting(run, which, figures, CountingMemory::From::kPool, HasCountingPool()));
    if (!had_room) {
      report_.notes.push_back(fmt::format(
          "{}: the driver's pool was too fragmented for separate buffers, which were then "
          "allocated without it; the driver's own peak is unknown",
          which));
      CKPLAN_RETURN_IF_ERROR(TryCounting(run, which, figures, CountingMemory::From::kDevice,
                                         /*allows_failure=*/false));
    }
    if (!has_failed()) CompareGradients(which, "with separate buffers");
    return Done{};
  }

  bool HasCountingPool() { return backend_.PooledPeak().has_value(); }

  // Returns false if there was no room and `allows_failure` allows that.
  Result<bool> TryCounting(const PlacedProgram& run, std::string_view which, RunFigures& figures,
                           CountingMemory::From from, bool allows_failure) {
    CountingMemory memory(backend_, run.program, from);
    if (!run.program.copies.empty()) {
      CKPLAN_ASSIGN_OR_RETURN(
          auto host,
          HostCopies::CreateSeparate(backend_, run.program, {{run.is_half_duplex, false}, false}));
      memory.UseHost(std::move(host));
    }
    backend_.ResetPooledPeak();
    const Result<double> loss = runner_.Run(run.program, memory, nullptr);
    if (!loss.ok() && loss.error().code == ErrorCode::kInfeasible && allows_failure) return false;
    if (!loss.ok()) {
      CKPLAN_RETURN_IF_ERROR(RecordPlanFault(loss.error(), which));
      return true;
    }
    figures.counted_peak = memory.peak();
    figures.counted_host_peak = memory.host_peak();
    if (from == CountingMemory::From::kDevice) return true;
    if (const auto bytes = backend_.PooledPeak()) figures.driver_peak = Bytes(*bytes);
    return true;
  }

  void ComparePeaks(std::string_view which, const RunFigures& figures) {
    const auto compare = [&](std::string_view what, Bytes measured, Bytes predicted) {
      if (measured == predicted) return;
      Fail(fmt::format("{}: the {} measured {} bytes, predicted {}", which, what, measured.count(),
                       predicted.count()));
    };
    compare("arena's peak", figures.arena_peak.total, figures.predicted_peak);
    compare("counting allocator's peak", figures.counted_peak.total, figures.predicted_peak);
    compare("peak on the host", figures.host_peak, figures.predicted_host_peak);
    compare("peak of separate copies on the host", figures.counted_host_peak,
            figures.predicted_host_peak);
  }

  // Records a fault of the plan as a validation failure; any other error ends the validation.
  Result<Done> RecordPlanFault(Error error, std::string_view which) {
    if (error.code != ErrorCode::kCheckFailed) return error;
    error.message = fmt::format("{}: {}", which, error.message);
    report_.failures.push_back(std::move(error));
    return Done{};
  }

  // All other runs must compute the first run's gradients.
  void CompareGradients(std::string_view which, std::string_view where) {
    const auto& trained = constants_.trained();
    for (size_t i = 0; i < trained.size(); ++i) {
      const StepConstant& parameter = step_.constants[trained[i]];
      const BufferDigest digest = backend_.Inspect(
          constants_.gradient(trained[i]), parameter.operand.bytes(), parameter.operand.type);
      if (digest.has_nan) {
        Fail(fmt::format("{}: {}, the gradient of \"{}\" has a NaN", which, where, parameter.name));
        return;
      }
      if (expected_.size() == i) {
        expected_.push_back({digest, constants_.DownloadGradient(trained[i])});
      } else if (digest != expected_[i].digest) {
        report_.differences.push_back(DifferenceTo(expected_[i], trained[i]));
      }
    }
    if (report_.differences.empty()) return;
    const ParameterDifference& first = report_.differences.front();
    Fail(
        fmt::format("{}: {}, the gradients of {} of {} parameters differ from those of keeping "
                    "everything in the arena; the first is \"{}\", in {} elements, by at most {:g}",
                    which, where, report_.differences.size(), report_.parameters, first.name,
                    first.elements, first.largest));
  }

  struct ExpectedGradient {
    BufferDigest digest;
    std::vector<float> contents;
  };

  ParameterDifference DifferenceTo(const ExpectedGradient& expected, ConstantId leaf) const {
    const std::vector<float> gradient = constants_.DownloadGradient(leaf);
    ParameterDifference difference{step_.constants[leaf].name};
    for (size_t k = 0; k < gradient.size(); ++k) {
      const float other = expected.contents[k];
      if (std::memcmp(&gradient[k], &other, sizeof(float)) == 0) continue;
      ++difference.elements;
      difference.largest =
          std::fmax(difference.largest,
                    std::fabs(static_cast<double>(gradient[k]) - static_cast<double>(other)));
    }
    return difference;
  }

  struct TimedRuns {
    std::vector<SecondsOfNodes> nodes;
    std::vector<double> steps;  // Undisturbed steps, if they are timed.
  };

  // Alternates between the two schedules, so that a machine that slows down affects both.
  Result<Done> Time(const PlacedProgram& keep_all, const PlacedProgram& plan) {
    if (options_.timed_runs == 0) return Done{};
    if (options_.records_steps && !plan.program.copies.empty()) {
      return MakeError(ErrorCode::kUnsupported,
                       "a step that copies to the host cannot be recorded; leave out --graph");
    }
    // Node times don't include waiting for copies.
    times_steps_ = backend_.IsAsynchronous() || !plan.program.copies.empty();
    TimedRuns kept;
    TimedRuns planned;
    for (int i = 0; i < options_.timed_runs; ++i) {
      CKPLAN_RETURN_IF_ERROR(TimeOnce(keep_all, "keeping everything", kept));
      if (!has_failed()) CKPLAN_RETURN_IF_ERROR(TimeOnce(plan, "the plan", planned));
      if (has_failed()) return Done{};
    }
    report_.keep_all.seconds = SecondsOf(kept);
    report_.plan.seconds = SecondsOf(planned);
    SetOperatorSeconds(kept, report_.keep_all);
    SetOperatorSeconds(planned, report_.plan);
    report_.timing = !times_steps_            ? StepTiming::kOperators
                     : options_.records_steps ? StepTiming::kRecorded
                                              : StepTiming::kSteps;
    if (*report_.keep_all.seconds > 0) {
      report_.measured_overhead = *report_.plan.seconds / *report_.keep_all.seconds - 1;
    }
    return Done{};
  }

  static void SetOperatorSeconds(const TimedRuns& runs, RunFigures& figures) {
    const StepSeconds typical = TypicalSeconds(runs.nodes);
    figures.operator_seconds = typical.total;
    figures.recompute_seconds = typical.recompute;
  }

  static double SecondsOf(const TimedRuns& runs) {
    return runs.steps.empty() ? TypicalSeconds(runs.nodes).total : Median(runs.steps);
  }

  // An asynchronous device, or one that copies to the host, runs two steps: one with marks around
  // each action, which cost a little time, and one without.
  Result<Done> TimeOnce(const PlacedProgram& run, std::string_view which, TimedRuns& runs) {
    CKPLAN_ASSIGN_OR_RETURN(const auto arena, ArenaFor(backend_, run, /*poisons=*/false));
    arena->Touch();
    const auto run_with = [&](RunObserver& observer) -> Result<Done> {
      CKPLAN_RETURN_IF_ERROR(runner_.Run(run.program, *arena, &observer));
      CompareGradients(which, "in a timed step");
      return Done{};
    };
    Stopwatch watch(backend_, step_);
    CKPLAN_RETURN_IF_ERROR(run_with(watch));
    runs.nodes.push_back(watch.Read());
    if (!times_steps_ || has_failed()) return Done{};
    StepTimer timer(backend_);
    if (options_.records_steps) return TimeRecorded(run, which, *arena, timer, runs);
    CKPLAN_RETURN_IF_ERROR(run_with(timer));
    runs.steps.push_back(timer.Seconds());
    return Done{};
  }

  Result<Done> TimeRecorded(const PlacedProgram& run, std::string_view which, ArenaMemory& arena,
                            StepTimer& timer, TimedRuns& runs) {
    CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<RecordedStep> recorded,
                            runner_.Record(run.program, arena));
    if (recorded == nullptr) {
      return MakeError(ErrorCode::kUnsupported,
                       fmt::format("the {} backend could not record a step; leave out --graph",
                                   backend_.name()));
    }
    CompareGradients(which, "in a step that was recorded");
    if (has_failed()) return Done{};
    CKPLAN_RETURN_IF_ERROR(runner_.RunRecorded(*recorded, &timer));
    CompareGradients(which, "in a recorded step");
    runs.steps.push_back(timer.Seconds());
    return Done{};
  }

  Backend& backend_;
  const StepGraph& step_;
  ConstantStore& constants_;
  Runner& runner_;
  const ValidateOptions& options_;
  Reference reference_;
  bool times_steps_ = false;
  std::vector<ExpectedGradient> expected_;  // In the order of trained().
  ValidationReport report_;
};

}  // namespace

Result<ValidationReport> ValidateRuns(Backend& backend, const StepGraph& step,
                                      ConstantStore& constants, Runner& runner,
                                      const PlacedProgram& keep_all, const PlacedProgram& plan,
                                      const ValidateOptions& options) {
  return Validator(backend, step, constants, runner, options).Validate(keep_all, plan);
}

namespace {

void PredictTimes(const Plan& plan, ValidationReport& report) {
  const auto step =
      static_cast<double>((plan.figures.forward_cost + plan.figures.backward_cost).count());
  const auto overhead = static_cast<double>(plan.figures.overhead.count());
  if (step > 0) report.predicted_overhead = overhead / step;
  // The costs of other models are good for comparing plans, not for predicting seconds.
  if (!report.timing || plan.request.cost_model != "file") return;
  constexpr double kNanosecond = 1e-9;
  report.keep_all.predicted_seconds = step * kNanosecond;
  report.plan.predicted_seconds = (step + overhead) * kNanosecond;
}

}  // namespace

Result<ValidationReport> ValidatePlan(Backend& backend, const StepGraph& step,
                                      const StepOperators& operators, ConstantStore& constants,
                                      const TensorGraph& planned, const Plan& plan,
                                      const ValidateOptions& options) {
  CKPLAN_RETURN_IF_ERROR(RequireLoss(options.loss, step));
  CKPLAN_ASSIGN_OR_RETURN(
      const SizedGraph run,
      GraphToRun(step, operators, planned, WorkspacesOf(plan), plan.request.align_bytes));
  CKPLAN_ASSIGN_OR_RETURN(const PlacedProgram ready, PlaceByPlan(step, run, plan));
  const PlacedProgram keep_all = PlaceKeepAll(step, run, plan);
  const Bytes spare = run.has_workspaces ? Bytes(0) : LargestWorkspace(operators);
  CKPLAN_ASSIGN_OR_RETURN(const DeviceBlock workspace, DeviceBlock::Allocate(backend, spare));
  const Loss loss(options.loss, options.seed);
  Runner runner(backend, step, operators, constants, loss, options.seed, workspace.get());
  CKPLAN_ASSIGN_OR_RETURN(ValidationReport report,
                          ValidateRuns(backend, step, constants, runner, keep_all, ready, options));
  report.constants = constants.usage();
  report.overheads = backend.Overheads();
  report.has_planned_workspaces = run.has_workspaces;
  report.unplanned_workspace = spare;
  report.notes.insert(report.notes.begin(), operators.notes.begin(), operators.notes.end());
  report.notes.insert(report.notes.begin(), step.notes.begin(), step.notes.end());
  if (!run.has_planned_sizes) {
    report.notes.push_back("tensors are larger than planned, so they were placed at new offsets");
  }
  PredictTimes(plan, report);
  return report;
}

}  // namespace ckplan
