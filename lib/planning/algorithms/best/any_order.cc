#include "lib/planning/algorithms/best/any_order.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/planning/algorithms/best/solve_program.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

// Operations have higher numbers than their ancestors.
std::vector<bool> AncestorsOf(const RunProblem& problem, int32_t op) {
  std::vector<bool> is_ancestor(At(problem.op_count));
  is_ancestor[At(op)] = true;
  for (int32_t next = op; next >= 0; --next) {
    if (!is_ancestor[At(next)]) continue;
    for (const int32_t read : problem.reads[next]) {
      is_ancestor[At(problem.producer[At(read)])] = true;
    }
  }
  is_ancestor[At(op)] = false;
  return is_ancestor;
}

std::vector<bool> DescendantsOf(const RunProblem& problem, int32_t op) {
  std::vector<bool> is_descendant(At(problem.op_count));
  is_descendant[At(op)] = true;
  for (int32_t next = op + 1; next < problem.op_count; ++next) {
    const std::span<const int32_t> reads = problem.reads[next];
    is_descendant[At(next)] = std::any_of(reads.begin(), reads.end(), [&](int32_t read) {
      return is_descendant[At(problem.producer[At(read)])];
    });
  }
  is_descendant[At(op)] = false;
  return is_descendant;
}

std::vector<OpId> FindLongestChain(const RunProblem& problem, std::span<const OpId> ops) {
  std::vector<OpId> sorted(ops.begin(), ops.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::vector<OpId>> chains;  // By operation: the longest chain that ends there.
  for (size_t i = 0; i < sorted.size(); ++i) {
    const std::vector<bool> is_ancestor = AncestorsOf(problem, sorted[i].index());
    std::vector<OpId> chain;
    for (size_t k = 0; k < i; ++k) {
      if (!is_ancestor[At(sorted[k].index())]) continue;
      if (chains[k].size() > chain.size()) chain = chains[k];
    }
    chain.push_back(sorted[i]);
    chains.push_back(std::move(chain));
  }
  std::vector<OpId> longest;
  for (const std::vector<OpId>& chain : chains) {
    if (chain.size() > longest.size()) longest = chain;
  }
  return longest;
}

namespace {

// A 0/1 variable of the program: a column or a known value.
struct Flag {
  int column = kNoColumn;
  int known = 0;

  bool IsKnown(int value) const { return column == kNoColumn && known == value; }
};

// A sum of flags that must not be negative.
class Row {
 public:
  void Add(const Flag& flag, int sign) {
    if (flag.column == kNoColumn) {
      known_ += sign * flag.known;
      return;
    }
    entries_.push_back({flag.column, static_cast<double>(sign)});
    if (sign < 0) --least_;
  }

  void AddTo(MipModel* model) && {
    if (least_ + known_ >= 0) return;  // The row always holds.
    model->AddRow(-known_, kMipInfinity, std::move(entries_));
  }

 private:
  std::vector<MipEntry> entries_;
  int known_ = 0;
  int least_ = 0;  // The minimum of the entries' sum.
};

class AnyOrderProgram {
 public:
  AnyOrderProgram(const RunProblem& problem, std::span<const OpId> order,
                  std::span<const OpId> chain, int64_t budget)
      : problem_(problem),
        order_(order),
        chain_(chain),
        budget_(budget),
        units_(problem, budget),
        is_required_(static_cast<size_t>(problem.op_count)) {
    for (const OpId op : order) is_required_[static_cast<size_t>(op.index())] = true;
    for (size_t j = 0; j < chain.size(); ++j) AddColumns(j);
    has_run_.emplace_back(is_required_.size(), Flag{kNoColumn, 1});
    for (size_t j = 0; j < chain.size(); ++j) AddRows(j);
  }

  const MipModel& model() const { return model_; }
  const ProgramUnits& units() const { return units_; }
  // Tells whether some moment has no room even for its own operation.
  bool is_hopeless() const { return is_hopeless_; }
  // No column exceeds 1.
  static size_t BeyondOne(double /*cost*/) { return 0; }

  AnyOrderPlan Read(const std::vector<double>& values) const {
    const auto is_one = [&](const Flag& flag) {
      return flag.column == kNoColumn ? flag.known == 1
                                      : values[static_cast<size_t>(flag.column)] > 0.5;
    };
    AnyOrderPlan solution;
    std::vector<std::tuple<size_t, bool, size_t>> keys;  // Interval; moments first; position.
    for (size_t place = 0; place < order_.size(); ++place) {
      const auto op = static_cast<size_t>(order_[place].index());
      size_t interval = 0;
      while (!is_one(has_run_[interval][op])) ++interval;
      const bool is_moment = interval > 0 && chain_[interval - 1] == order_[place];
      keys.emplace_back(interval, !is_moment, place);
    }
    std::sort(keys.begin(), keys.end());
    for (const auto& [interval, is_no_moment, place] : keys) {
      if (!is_no_moment) solution.moments.push_back(static_cast<int32_t>(solution.order.size()));
      solution.order.push_back(order_[place]);
    }
    for (size_t j = 0; j < chain_.size(); ++j) {
      std::vector<bool>& kept = solution.plan.kept.emplace_back(kept_[j].size());
      for (size_t u = 0; u < kept.size(); ++u) {
        kept[u] = problem_.bytes[u] == 0 ? IsMade(u) && is_one(has_run_[j][ProducerOf(u)])
                                         : is_one(kept_[j][u]);
      }
    }
    return solution;
  }

 private:
  static size_t At(int32_t i) { return static_cast<size_t>(i); }
  size_t ProducerOf(size_t value) const { return At(problem_.producer[value]); }
  bool IsMade(size_t value) const {
    return problem_.producer[value] >= 0 && is_required_[ProducerOf(value)];
  }

  Flag NewColumn(double cost = 0) {
    return {model_.AddColumn({.cost = cost, .upper = 1, .is_integer = true})};
  }

  void AddColumns(size_t j) {
    PollStop();
    const int32_t moment = chain_[j].index();
    const std::vector<bool> is_before = AncestorsOf(problem_, moment);
    const std::vector<bool> is_descendant = DescendantsOf(problem_, moment);
    std::vector<Flag>& has_run = has_run_.emplace_back(is_required_.size());
    std::vector<Flag>& reruns = reruns_.emplace_back(is_required_.size());
    for (const OpId id : order_) {
      const auto op = At(id.index());
      if (id.index() == moment || is_descendant[op]) continue;
      has_run[op] = is_before[op] ? Flag{kNoColumn, 1} : NewColumn();
      if (!problem_.may_repeat[op]) continue;
      reruns[op] = NewColumn(static_cast<double>(problem_.cost[op] / units_.cost));
    }
    std::vector<Flag>& kept = kept_.emplace_back(problem_.bytes.size());
    for (size_t u = 0; u < kept.size(); ++u) {
      if (IsUseful(j, u)) kept[u] = NewColumn();
    }
    for (const int32_t read : problem_.reads[moment]) kept[At(read)] = {kNoColumn, 1};
  }

  // Tells whether a run after moment j may read the value, or it is a result.
  bool IsUseful(size_t j, size_t u) const {
    if (problem_.bytes[u] == 0 || !IsMade(u) || has_run_[j][ProducerOf(u)].IsKnown(0)) return false;
    const std::span<const int32_t> readers = problem_.readers[static_cast<int32_t>(u)];
    return problem_.is_result[u] || std::any_of(readers.begin(), readers.end(), [&](int32_t op) {
             return is_required_[At(op)] &&
                    (problem_.may_repeat[At(op)] || !has_run_[j][At(op)].IsKnown(1));
           });
  }

  void AddRows(size_t j) {
    PollStop();
    AddCapacity(j);
    for (const OpId id : order_) {
      AddSequence(j, id.index());
      for (const int32_t read : problem_.reads[id.index()]) {
        AddPrecedence(j, id.index(), read);
        // A value without bytes is kept from its first run on.
        if (problem_.bytes[At(read)] == 0) continue;
        AddFirstRead(j, id.index(), read);
        AddReread(j, id.index(), read);
      }
    }
    for (size_t u = 0; u < kept_[j].size(); ++u) {
      if (problem_.bytes[u] > 0 && IsMade(u)) AddPersistence(j, u);
    }
  }

  // Adds f^j of an operation with this sign.
  void AddFirstRun(Row* row, size_t j, size_t op, int sign) const {
    row->Add(has_run_[j + 1][op], sign);
    row->Add(has_run_[j][op], -sign);
  }

  // Adds constraint (1) of any_order.h.
  void AddFirstRead(size_t j, int32_t op, int32_t read) {
    const size_t producer = ProducerOf(At(read));
    // The producer has its first run in this interval or later, where constraint (5) puts it before
    // its reader.
    if (has_run_[j][producer].IsKnown(0)) return;
    Row row;
    row.Add(kept_[j][At(read)], 1);
    row.Add(reruns_[j][producer], 1);
    AddFirstRun(&row, j, producer, 1);
    AddFirstRun(&row, j, At(op), -1);
    std::move(row).AddTo(&model_);
  }

  // Adds constraint (2).
  void AddReread(size_t j, int32_t op, int32_t read) {
    Row row;
    row.Add(kept_[j][At(read)], 1);
    row.Add(reruns_[j][ProducerOf(At(read))], 1);
    row.Add(reruns_[j][At(op)], -1);
    std::move(row).AddTo(&model_);
  }

  // Adds constraint (3), and that only values computed before can be in memory.
  void AddPersistence(size_t j, size_t u) {
    const size_t producer = ProducerOf(u);
    Row has_run;
    has_run.Add(has_run_[j][producer], 1);
    has_run.Add(kept_[j][u], -1);
    std::move(has_run).AddTo(&model_);
    const bool is_last = j + 1 == chain_.size();
    if (is_last && !problem_.is_result[u]) return;
    Row row;
    row.Add(kept_[j][u], 1);
    row.Add(reruns_[j][producer], 1);
    AddFirstRun(&row, j, producer, 1);
    row.Add(is_last ? Flag{kNoColumn, 1} : kept_[j + 1][u], -1);
    std::move(row).AddTo(&model_);
  }

  // Adds constraint (4).
  void AddCapacity(size_t j) {
    const auto op = At(chain_[j].index());
    int64_t room =
        budget_ - problem_.written_bytes[op] - problem_.workspace[op] + problem_.in_place_bytes[op];
    std::vector<MipEntry> entries;
    for (size_t u = 0; u < kept_[j].size(); ++u) {
      const Flag& kept = kept_[j][u];
      if (kept.IsKnown(1)) room -= problem_.bytes[u];
      const int64_t units = problem_.bytes[u] / units_.bytes;
      if (kept.column == kNoColumn || units == 0) continue;
      entries.push_back({kept.column, static_cast<double>(units)});
    }
    if (room < 0) is_hopeless_ = true;
    model_.AddRow(-kMipInfinity, static_cast<double>(std::max<int64_t>(room, 0) / units_.bytes),
                  std::move(entries));
  }

  // Adds constraint (5).
  void AddPrecedence(size_t j, int32_t op, int32_t read) {
    Row row;
    row.Add(has_run_[j][ProducerOf(At(read))], 1);
    row.Add(has_run_[j][At(op)], -1);
    std::move(row).AddTo(&model_);
  }

  void AddSequence(size_t j, int32_t op) {
    Row later;
    AddFirstRun(&later, j, At(op), 1);
    std::move(later).AddTo(&model_);
    Row rerun;
    rerun.Add(has_run_[j][At(op)], 1);
    rerun.Add(reruns_[j][At(op)], -1);
    std::move(rerun).AddTo(&model_);
  }

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const std::span<const OpId> chain_;
  const int64_t budget_;
  const ProgramUnits units_;
  std::vector<bool> is_required_;  // By operation: it is in the order.
  bool is_hopeless_ = false;
  MipModel model_;
  // One list per moment; has_run_ has one more for the end.
  std::vector<std::vector<Flag>> has_run_;  // x^j, by operation.
  std::vector<std::vector<Flag>> reruns_;   // r^j, by operation.
  std::vector<std::vector<Flag>> kept_;     // a^j, by value; 0 for values without bytes.
};

}  // namespace

Result<AnyOrderOutcome> SolveMomentsInAnyOrder(const RunProblem& problem,
                                               std::span<const OpId> order,
                                               std::span<const OpId> chain, int64_t budget,
                                               int64_t max_work) {
  return SolveProgram<AnyOrderPlan>(AnyOrderProgram(problem, order, chain, budget), {max_work});
}

namespace {

class AnyOrderLoop {
 public:
  AnyOrderLoop(const JointGraph& graph, const RunProblem& problem, std::span<const OpId> order,
               std::span<const OpId> moments, int64_t budget, const LoopLimits& limits)
      : graph_(graph),
        problem_(problem),
        order_(order),
        budget_(budget),
        limits_(limits),
        chain_(FindLongestChain(problem, moments)) {
    for (const OpId op : order) once_ += problem.cost[static_cast<size_t>(op.index())];
    FindComparable();
  }

  Result<LoopOutcome> Run() && {
    for (int64_t round = 0; round < limits_.rounds && !IsDone(); ++round) {
      CKPLAN_ASSIGN_OR_RETURN(const bool may_go_on, Round());
      if (!may_go_on) break;
    }
    outcome_.moments = chain_;
    return std::move(outcome_);
  }

 private:
  bool IsDone() const {
    const bool is_optimal = outcome_.runs && outcome_.cost - once_ <= outcome_.lower_bound;
    return is_optimal || chain_.empty() || outcome_.work >= limits_.work;
  }

  // Tells whether another round may improve the bound.
  Result<bool> Round() {
    CKPLAN_ASSIGN_OR_RETURN(
        const AnyOrderOutcome solved,
        SolveMomentsInAnyOrder(problem_, order_, chain_, budget_, limits_.work - outcome_.work));
    outcome_.work += solved.work;
    outcome_.is_infeasible = solved.is_infeasible;
    if (solved.is_infeasible) return false;
    outcome_.lower_bound = std::max(outcome_.lower_bound, solved.lower_bound);
    if (!solved.plan) return false;
    const AnyOrderPlan& plan = *solved.plan;
    const Runs runs = ExpandMoments(problem_, plan.order, plan.moments, plan.plan);
    const StepView view = ViewSteps(graph_, plan.order, runs);
    if (view.Peak() <= budget_) {
      KeepIfCheaper(runs);
      return false;
    }
    CKPLAN_ASSIGN_OR_RETURN(const std::vector<OpId> found, SolveInOrder(plan.order));
    return Extend(plan.order, view, found);
  }

  // Searches for a plan in the program's order. Returns the moments that this used.
  Result<std::vector<OpId>> SolveInOrder(const Runs& order) {
    LoopLimits limits = limits_;
    limits.work -= outcome_.work;
    CKPLAN_ASSIGN_OR_RETURN(const LoopOutcome loop,
                            SolveMomentLoop(graph_, problem_, order, budget_, limits));
    outcome_.work += loop.work;
    if (loop.runs) KeepIfCheaper(*loop.runs);
    return loop.moments;
  }

  void KeepIfCheaper(const Runs& runs) {
    const int64_t cost = Simulator(graph_).Run(runs).value().cost.count();
    if (outcome_.runs && outcome_.cost <= cost) return;
    outcome_.cost = cost;
    outcome_.runs = runs;
  }

  // Extends the chain by a moment where the expansion exceeds the budget, or else by a moment of
  // the loop in the chosen order. Returns whether the chain has grown.
  bool Extend(const Runs& order, const StepView& view, const std::vector<OpId>& found) {
    const auto op_at = [&](int32_t position) { return order[static_cast<size_t>(position)]; };
    const std::optional<size_t> top = TopAbove(view, budget_, [&](size_t step) {
      const int32_t position = view.position[step];
      return position < static_cast<int32_t>(order.size()) && IsComparable(op_at(position));
    });
    const auto other =
        std::find_if(found.begin(), found.end(), [&](OpId op) { return IsComparable(op); });
    if (!top && other == found.end()) return false;
    chain_.push_back(top ? op_at(view.position[*top]) : *other);
    // Ancestors have lower numbers than their descendants.
    std::sort(chain_.begin(), chain_.end());
    FindComparable();
    return true;
  }

  bool IsComparable(OpId op) const { return is_comparable_[static_cast<size_t>(op.index())]; }

  void FindComparable() {
    is_comparable_.assign(static_cast<size_t>(problem_.op_count), true);
    for (const OpId link : chain_) {
      const std::vector<bool> before = AncestorsOf(problem_, link.index());
      const std::vector<bool> after = DescendantsOf(problem_, link.index());
      for (size_t i = 0; i < before.size(); ++i) {
        is_comparable_[i] = is_comparable_[i] && (before[i] || after[i]);
      }
    }
  }

  const JointGraph& graph_;
  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const int64_t budget_;
  const LoopLimits limits_;
  int64_t once_ = 0;  // The cost of running the order once.
  std::vector<OpId> chain_;
  // Operations outside the chain that are comparable with all of it: ancestors or descendants.
  std::vector<bool> is_comparable_;
  LoopOutcome outcome_;
};

}  // namespace

Result<LoopOutcome> SolveAnyOrderLoop(const JointGraph& graph, const RunProblem& problem,
                                      std::span<const OpId> order, std::span<const OpId> moments,
                                      int64_t budget, const LoopLimits& limits) {
  return AnyOrderLoop(graph, problem, order, moments, budget, limits).Run();
}

}  // namespace ckplan
