#include "lib/planning/algorithms/checkmate/checkmate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

// The maximum budget in units: well within double precision, and large enough that the solver's
// tolerance is 10^-10 of it.
constexpr double kMaxUnits = 10'000;
// Simplex iterations times columns for one program: up to about 15 s.
constexpr int64_t kMaxWork = 40'000'000;
// Costs are integers, so a bound within less than 1 proves them.
constexpr double kCostGap = 0.99;

// A column of the program, or a constant if only one value is possible.
struct Term {
  int column = -1;
  double constant = 0;
  bool is(double value) const { return column < 0 && constant == value; }
};

constexpr Term kZero = {-1, 0};
constexpr Term kOne = {-1, 1};

// A row of the program: the sum of its terms is at most `bound`.
class Row {
 public:
  explicit Row(double bound) : bound_(bound) {}
  Row& Add(double coefficient, const Term& term) {
    if (term.column < 0) {
      bound_ -= coefficient * term.constant;
    } else {
      entries_.push_back({term.column, coefficient});
    }
    return *this;
  }
  void AddTo(MipModel* model) && {
    // A row without columns compares constants. If it holds, it is redundant; if not, no plan fits
    // the budget.
    if (!entries_.empty() || bound_ < 0) {
      model->AddRow(-kMipInfinity, bound_, std::move(entries_));
    }
  }

 private:
  double bound_;
  std::vector<MipEntry> entries_;
};

std::vector<std::vector<InPlaceWrite>> TakeoversOf(const JointGraph& graph) {
  std::vector<std::vector<InPlaceWrite>> takeovers;
  for (const OpId id : graph.ops().ids()) takeovers.push_back(PossibleInPlaceWrites(graph, id));
  return takeovers;
}

}  // namespace

class StageProgram::Builder {
 public:
  // `unit` is the number of bytes per unit of the program.
  Builder(const StageProgram& program, double unit)
      : program_(program),
        problem_(program.problem_),
        unit_(unit),
        runs_(At(problem_.op_count)),
        stored_(At(problem_.op_count) + 1, std::vector<Term>(At(problem_.value_count))) {}

  // Without a budget, minimizes the peak.
  void Build(std::optional<int64_t> budget, int64_t highest) {
    if (!budget) {
      peak_ = {model_.AddColumn({.cost = 1, .upper = static_cast<double>(highest) / unit_}), 0};
    }
    AddColumns(budget.has_value());
    for (int32_t stage = 0; stage < problem_.op_count; ++stage) {
      PollStop();
      AddAvailability(stage);
      AddStorage(stage + 1);
      AddAliases(stage);
      AddMemory(stage, budget);
    }
  }

  const MipModel& model() const { return model_; }

  Runs RunsOf(const std::vector<double>& values) const {
    Runs runs;
    for (int32_t stage = 0; stage < problem_.op_count; ++stage) {
      for (int32_t op = 0; op <= stage; ++op) {
        const Term& term = Run(stage, op);
        const double value = term.column < 0 ? term.constant : values[At(term.column)];
        if (value > 0.5) runs.emplace_back(op);
      }
    }
    return runs;
  }

 private:
  const Term& Run(int32_t stage, int32_t op) const { return runs_[At(stage)][At(op)]; }
  const Term& Stored(int32_t stage, int32_t value) const { return stored_[At(stage)][At(value)]; }
  int32_t Producer(int32_t value) const { return problem_.producer[At(value)]; }
  int32_t StorageOf(int32_t value) const {
    return program_.graph_.value(ValueId(value)).storage.index();
  }

  Term AddBinary(double cost) {
    return {model_.AddColumn({.cost = cost, .upper = 1, .is_integer = true}), 0};
  }

  void AddColumns(bool counts_cost) {
    for (int32_t stage = 0; stage < problem_.op_count; ++stage) {
      runs_[At(stage)].assign(At(stage) + 1, kZero);
      runs_[At(stage)].back() = kOne;
      for (int32_t op = 0; op < stage; ++op) {
        const bool may_run = problem_.may_repeat[At(op)] && stage <= program_.useful_until_[At(op)];
        const double cost = static_cast<double>(problem_.cost[At(op)]);
        if (may_run) runs_[At(stage)][At(op)] = AddBinary(counts_cost ? cost : 0);
      }
      for (int32_t value = 0; value < problem_.value_count; ++value) {
        const bool may_be_there = Producer(value) >= 0 && Producer(value) < stage;
        if (!may_be_there || stage > program_.needed_until_[At(value)]) continue;
        stored_[At(stage)][At(value)] = AddBinary(0);
      }
    }
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const bool is_kept = problem_.is_result[At(value)] && Producer(value) >= 0;
      if (is_kept) stored_.back()[At(value)] = kOne;
    }
  }

  // Adds rows (1b); see checkmate.h.
  void AddAvailability(int32_t stage) {
    for (int32_t op = 0; op <= stage; ++op) {
      if (Run(stage, op).is(0)) continue;
      for (const int32_t read : problem_.reads[op]) {
        Row row(0);
        row.Add(1, Run(stage, op)).Add(-1, Run(stage, Producer(read))).Add(-1, Stored(stage, read));
        std::move(row).AddTo(&model_);
      }
    }
  }

  // Adds rows (1c), and rows that forbid keeping a value that is recomputed before its next read.
  void AddStorage(int32_t stage) {
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const int32_t producer = Producer(value);
      if (Stored(stage, value).is(0) || producer == stage - 1) continue;
      Row before(0);
      before.Add(1, Stored(stage, value));
      before.Add(-1, Run(stage - 1, producer)).Add(-1, Stored(stage - 1, value));
      std::move(before).AddTo(&model_);
      Row once(1);
      once.Add(1, Stored(stage - 1, value)).Add(1, Run(stage - 1, producer));
      std::move(once).AddTo(&model_);
    }
  }

  void AddAliases(int32_t stage) {
    for (int32_t alias = 0; alias < problem_.value_count; ++alias) {
      const int32_t storage = StorageOf(alias);
      if (storage == alias || Producer(storage) < 0 || Stored(stage, alias).is(0)) continue;
      Row together(0);
      together.Add(1, Stored(stage, alias)).Add(-1, Stored(stage, storage));
      std::move(together).AddTo(&model_);
      Row anew(1);
      anew.Add(1, Stored(stage, alias)).Add(1, Run(stage, Producer(storage)));
      std::move(anew).AddTo(&model_);
    }
  }

  void AddMemory(int32_t stage, std::optional<int64_t> budget) {
    AddNeededTerms(stage);
    for (int32_t op = 0; op <= stage; ++op) {
      if (Run(stage, op).is(0)) continue;
      Row row(budget ? static_cast<double>(*budget) / unit_ : 0);
      if (!budget) row.Add(-1, peak_);
      for (int32_t value = 0; value < problem_.value_count; ++value) {
        const double size = Units(problem_.bytes[At(value)]);
        if (size == 0 || Producer(value) > stage) continue;
        if (Producer(value) < op) {
          row.Add(size, FindNeedTerm(value, op));
        } else {
          row.Add(size, Stored(stage, value));
          if (Producer(value) == op) row.Add(size, Run(stage, op));
        }
      }
      row.Add(Units(problem_.workspace[At(op)]), Run(stage, op));
      AddTakeovers(stage, op, &row);
      std::move(row).AddTo(&model_);
    }
  }

  double Units(int64_t bytes) const { return static_cast<double>(bytes) / unit_; }

  // Adds the variables N of the stage (checkmate.h): one for each reader of each value in the
  // stage, and one for the time after the stage.
  void AddNeededTerms(int32_t stage) {
    needed_.assign(At(problem_.value_count), {});
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (problem_.bytes[At(value)] == 0 || Producer(value) > stage) continue;
      const std::span<const int32_t> readers = problem_.readers[value];
      const auto end = std::upper_bound(readers.begin(), readers.end(), stage);
      std::vector<Term>& terms = needed_[At(value)];
      terms.assign(static_cast<size_t>(end - readers.begin()) + 1, kZero);
      terms.back() = Stored(stage + 1, value);
      for (size_t j = terms.size() - 1; j-- > 0;) {
        terms[j] = UpperBoundOf(Run(stage, readers[j]), terms[j + 1]);
      }
    }
  }

  // Returns a term that is at least as large as both arguments.
  Term UpperBoundOf(const Term& a, const Term& b) {
    if (a.is(1) || b.is(1)) return kOne;
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    const Term either = {model_.AddColumn({.upper = 1}), 0};
    for (const Term& each : {a, b}) {
      Row row(0);
      row.Add(1, each).Add(-1, either);
      std::move(row).AddTo(&model_);
    }
    return either;
  }

  // Returns the term that is 1 if `op`, a later operation of the stage, or a later stage needs the
  // value.
  const Term& FindNeedTerm(int32_t value, int32_t op) const {
    const std::span<const int32_t> readers = problem_.readers[value];
    const auto first = std::lower_bound(readers.begin(), readers.end(), op) - readers.begin();
    const std::vector<Term>& terms = needed_[At(value)];
    return terms[std::min(static_cast<size_t>(first), terms.size() - 1)];
  }

  // A pair from PossibleInPlaceWrites, and the column that tells whether the takeover happens.
  struct Takeover {
    InPlaceWrite pair;
    Term taken;
  };

  void AddTakeovers(int32_t stage, int32_t op, Row* memory) {
    const std::vector<InPlaceWrite>& pairs = program_.takeovers_[At(op)];
    std::vector<Takeover> before;
    for (const InPlaceWrite& pair : pairs) {
      const int32_t read = pair.read.index();
      const Term& is_needed = FindNeedTerm(read, op + 1);
      if (is_needed.is(1)) continue;
      // A single one is integral whenever R and S are.
      const Term happens = {model_.AddColumn({.upper = 1, .is_integer = pairs.size() > 1}), 0};
      Row runs(0);
      runs.Add(1, happens).Add(-1, Run(stage, op));
      std::move(runs).AddTo(&model_);
      Row dies(1);
      dies.Add(1, happens).Add(1, is_needed);
      std::move(dies).AddTo(&model_);
      AddOrder(op, {pair, happens}, before);
      memory->Add(-Units(problem_.bytes[At(read)]), happens);
      before.push_back({pair, happens});
    }
  }

  // Adds the rules between this pair and the pairs before it: memory is taken over only once, and a
  // write takes this memory only if it cannot take the other one, because that is needed or an
  // earlier write took it.
  void AddOrder(int32_t op, const Takeover& takeover, const std::vector<Takeover>& before) {
    const auto& [pair, taken] = takeover;
    for (const Takeover& other : before) {
      if (other.pair.read == pair.read) {
        Row once(1);
        once.Add(1, taken).Add(1, other.taken);
        std::move(once).AddTo(&model_);
      }
      if (other.pair.write != pair.write) continue;
      Row passed_over(0);
      passed_over.Add(1, taken).Add(-1, FindNeedTerm(other.pair.read.index(), op + 1));
      for (const Takeover& earlier : before) {
        const bool is_earlier = earlier.pair.write != pair.write;
        if (is_earlier && earlier.pair.read == other.pair.read) passed_over.Add(-1, earlier.taken);
      }
      std::move(passed_over).AddTo(&model_);
    }
  }

  const StageProgram& program_;
  const RunProblem& problem_;
  const double unit_;
  MipModel model_;
  Term peak_;
  std::vector<std::vector<Term>> runs_;    // The variables R, by stage and operation.
  std::vector<std::vector<Term>> stored_;  // The variables S, by stage and value; the last entry is
                                           // after the step.
  std::vector<std::vector<Term>> needed_;  // The variables N of one stage, by value and reader.
};

// Works backwards. An operation is useful until its own stage. If it may repeat, it is useful as
// long as any value that it writes, and a value as long as any operation that reads it.
StageProgram::StageProgram(const JointGraph& graph, const RunProblem& problem)
    : graph_(graph),
      problem_(problem),
      takeovers_(TakeoversOf(graph)),
      useful_until_(At(problem.op_count)),
      needed_until_(At(problem.value_count), -1) {
  for (int32_t op = problem.op_count - 1; op >= 0; --op) {
    int32_t& useful = useful_until_[At(op)] = op;
    for (const int32_t write : problem.writes[op]) {
      int32_t& needed_until = needed_until_[At(write)] = op;
      for (const int32_t reader : problem.readers[write]) {
        needed_until = std::max(needed_until, useful_until_[At(reader)]);
      }
      if (problem.is_result[At(write)]) needed_until = problem.op_count - 1;
      if (problem.may_repeat[At(op)]) useful = std::max(useful, needed_until);
    }
  }
}

Result<StageSolution> StageProgram::MinTime(int64_t budget) const { return Solve(budget, budget); }

Result<StageSolution> StageProgram::LeastPeak(int64_t highest) const {
  return Solve(std::nullopt, highest);
}

Result<StageSolution> StageProgram::Solve(std::optional<int64_t> budget, int64_t highest) const {
  const double unit = std::max(1.0, static_cast<double>(highest) / kMaxUnits);
  Builder builder(*this, unit);
  builder.Build(budget, highest);
  MipLimits limits;
  const auto columns = static_cast<int64_t>(builder.model().columns().size());
  limits.lp_iterations = kMaxWork / std::max<int64_t>(1, columns);
  if (budget) limits.absolute_gap = kCostGap;
  CKPLAN_ASSIGN_OR_RETURN(const MipOutcome outcome, SolveMip(builder.model(), limits));
  StageSolution solution{outcome.status, std::nullopt};
  if (outcome.values) solution.runs = builder.RunsOf(*outcome.values);
  return solution;
}

namespace {

constexpr size_t kMaxOps = 80;

int64_t LargestWorkingSet(const RunProblem& problem) {
  int64_t largest = 0;
  for (int32_t op = 0; op < problem.op_count; ++op) {
    const auto at = static_cast<size_t>(op);
    int64_t bytes = problem.written_bytes[at] + problem.workspace[at] - problem.in_place_bytes[at];
    for (const int32_t read : problem.reads[op]) bytes += problem.bytes[static_cast<size_t>(read)];
    largest = std::max(largest, bytes);
  }
  return largest;
}

class Checkmate : public PreparedRunSolver {
 public:
  explicit Checkmate(const JointGraph& graph)
      : graph_(graph),
        problem_(graph),
        program_(graph, problem_),
        simulator_(graph),
        own_peak_(KeepAllPeak(graph).count()),
        min_(std::min(own_peak_, LargestWorkingSet(problem_))) {}

  Knob knob() const override { return {Knob::Kind::kPeakLimit, min_, own_peak_, min_}; }

  Result<RunOutcome> Solve(int64_t limit, const SolveLimits& limits) override {
    const StopScope scope(limits.stop);
    if (limit > min_ || limit >= own_peak_) return Within(limit);
    if (!least_) {
      CKPLAN_ASSIGN_OR_RETURN(StageSolution solution, program_.LeastPeak(own_peak_));
      least_ = {solution.runs.value_or(OwnOrder(graph_)), solution.status == MipStatus::kOptimal};
    }
    CKPLAN_ASSIGN_OR_RETURN(RunOutcome outcome, Within(PeakOf(least_->runs)));
    outcome.is_optimal &= least_->is_proven;
    return outcome;
  }

 private:
  struct MinPeakPlan {
    Runs runs;
    bool is_proven = false;
  };

  int64_t PeakOf(const Runs& runs) { return simulator_.Run(runs).value().peak.count(); }
  int64_t CostOf(const Runs& runs) { return simulator_.Run(runs).value().cost.count(); }

  Result<RunOutcome> Within(int64_t limit) {
    if (limit >= own_peak_) return OutcomeOf(OwnOrder(graph_), true);
    const auto known = solved_.find(limit);
    if (known != solved_.end()) return known->second;
    CKPLAN_ASSIGN_OR_RETURN(const StageSolution solution, program_.MinTime(limit));
    std::optional<Runs> runs = solution.runs;
    bool is_proven = solution.status == MipStatus::kOptimal;
    if (runs && PeakOf(*runs) > limit) {
      CKPLAN_ASSIGN_OR_RETURN(const StageSolution again,
                              program_.MinTime(2 * limit - PeakOf(*runs) - 1));
      is_proven &= again.runs && CostOf(*again.runs) == CostOf(*runs);
      runs = again.runs;
    }
    const bool fits = runs && PeakOf(*runs) <= limit;
    if (!fits && least_ && PeakOf(least_->runs) <= limit) {
      runs = least_->runs;
      is_proven = false;
    } else if (!fits) {
      PollStop();
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("checkmate has no plan within {} bytes", limit));
    }
    const RunOutcome outcome = OutcomeOf(*std::move(runs), is_proven);
    return solved_.emplace(limit, outcome).first->second;
  }

  static RunOutcome OutcomeOf(Runs runs, bool is_proven) {
    return {std::move(runs), is_proven,
            is_proven ? "optimal among plans in stages: first runs in the graph's order, and each "
                        "operation at most once between two first runs"
                      : "heuristic: the best plan in stages when the solver was stopped"};
  }

  const JointGraph& graph_;
  const RunProblem problem_;
  const StageProgram program_;
  Simulator simulator_;
  const int64_t own_peak_;
  const int64_t min_;  // A lower bound on the peak of every plan.
  std::optional<MinPeakPlan> least_;
  std::map<int64_t, RunOutcome> solved_;
};

}  // namespace

Result<std::unique_ptr<PreparedRunSolver>> PrepareCheckmateRuns(const JointGraph& graph,
                                                                const SolveLimits&) {
  if (!HasMipSolver()) {
    return MakeError(
        ErrorCode::kUnsupported,
        "checkmate needs HiGHS, but ckplan was built without it; see docs/dependencies.md");
  }
  if (graph.ops().size() > kMaxOps) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("checkmate is limited to {} operations of a training step, forward and "
                    "backward; \"{}\" has {}",
                    kMaxOps, graph.name(), graph.ops().size()));
  }
  return std::unique_ptr<PreparedRunSolver>(new Checkmate(graph));
}

}  // namespace ckplan
