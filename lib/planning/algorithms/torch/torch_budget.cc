#include "lib/planning/algorithms/torch/torch_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

namespace {

// Operator types that compute much per byte, as ONNX, PyTorch and graph authors name them: whole
// words between dots, and parts of words, in lower case.
constexpr std::array<std::string_view, 8> kIntensiveWords = {"mm",  "bmm", "addmm", "baddbmm",
                                                             "rnn", "gru", "lstm",  "_scaled_mm"};
constexpr std::array<std::string_view, 6> kIntensiveParts = {"conv",   "gemm",   "matmul",
                                                             "linear", "einsum", "attention"};

bool IsIntensiveWord(std::string_view word) {
  if (std::find(kIntensiveWords.begin(), kIntensiveWords.end(), word) != kIntensiveWords.end()) {
    return true;
  }
  if (word.starts_with("convert")) return false;
  return std::any_of(kIntensiveParts.begin(), kIntensiveParts.end(), [&](std::string_view part) {
    return word.find(part) != std::string_view::npos;
  });
}

bool IsIntensiveType(std::string_view type) {
  const std::string lower = LowerCase(type);
  for (size_t begin = 0; begin <= lower.size();) {
    const size_t end = std::min(lower.find('.', begin), lower.size());
    if (IsIntensiveWord(std::string_view(lower).substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

int32_t FirstBackward(const JointGraph& graph) {
  for (const OpId id : graph.ops().ids()) {
    if (graph.op(id).phase == Phase::kBackward) return id.index();
  }
  return static_cast<int32_t>(graph.ops().size());
}

}  // namespace

SavedValues::SavedValues(const JointGraph& graph, const RunProblem& problem)
    : problem_(problem), border_(FirstBackward(graph)), network_(2 * problem.value_count) {
  FindNeeds();
  FindIntensive(graph);
  BuildNetwork(graph);
  by_cut_ = Cut(std::vector<bool>(At(problem_.op_count)));
  FillKnapsack();
}

// Results stay in memory anyway, so saving them is free.
int64_t SavedValues::CostToSave(int32_t value) const {
  return problem_.is_result[At(value)] ? 0 : problem_.bytes[At(value)];
}

int64_t SavedValues::BytesOf(const std::vector<bool>& saved) const {
  int64_t bytes = 0;
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (saved[At(value)]) bytes += CostToSave(value);
  }
  return bytes;
}

void SavedValues::FindNeeds() {
  is_needed_.assign(At(problem_.value_count), false);
  for (int32_t op = border_; op < problem_.op_count; ++op) {
    for (const int32_t read : problem_.reads[op]) {
      if (IsForwardValue(read)) is_needed_[At(read)] = true;
    }
  }
  max_bytes_ = BytesOf(is_needed_);
}

void SavedValues::FindIntensive(const JointGraph& graph) {
  is_intensive_.assign(At(problem_.op_count), false);
  bool has_known = false;
  int64_t cost = 0;
  for (int32_t op = 0; op < border_; ++op) {
    is_intensive_[At(op)] = IsIntensiveType(graph.op(OpId(op)).op);
    has_known |= is_intensive_[At(op)];
    cost += problem_.cost[At(op)];
  }
  for (int32_t op = 0; op < border_ && !has_known; ++op) {
    is_intensive_[At(op)] = problem_.cost[At(op)] > cost / border_;
  }
}

// If Kept(v) is on the sink's side, v is read. If Made(v) is as well, v is recomputed, which reads
// its producer's inputs. A cut between the two saves v.
void SavedValues::BuildNetwork(const JointGraph& graph) {
  for (int32_t op = 0; op < border_; ++op) {
    PollStop();
    for (const int32_t write : problem_.writes[op]) {
      network_.AddArc(Made(write), Kept(write), CostToSave(write));
      if (is_needed_[At(write)]) network_.SetTerminal(Kept(write), MaxFlow::Terminal::kSink);
      for (const int32_t read : problem_.reads[op]) {
        network_.AddArc(Kept(read), Made(write), MaxFlow::kInfinite);
      }
      // Recomputing a value recomputes the memory that holds it.
      const int32_t storage = graph.value(ValueId(write)).storage.index();
      if (storage != write && IsForwardValue(storage)) {
        network_.AddArc(Made(write), Made(storage), MaxFlow::kInfinite);
      }
    }
  }
}

// `may_rerun` marks the compute-intensive operations that may be recomputed anyway.
std::vector<bool> SavedValues::Cut(const std::vector<bool>& may_rerun) {
  using Terminal = MaxFlow::Terminal;
  for (int32_t op = 0; op < border_; ++op) {
    const bool is_banned =
        !problem_.may_repeat[At(op)] || (is_intensive_[At(op)] && !may_rerun[At(op)]);
    for (const int32_t write : problem_.writes[op]) {
      network_.SetTerminal(Made(write), is_banned ? Terminal::kSource : Terminal::kNone);
    }
  }
  network_.Solve();
  const std::vector<bool> is_before = network_.LargestSourceSide();
  std::vector<bool> saved(At(problem_.value_count));
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    saved[At(value)] =
        IsForwardValue(value) && is_before[At(Made(value))] && !is_before[At(Kept(value))];
  }
  return saved;
}

// For the first i items and each share, finds the highest total recomputation cost of items that
// fit.
void SavedValues::FillKnapsack() {
  for (int32_t op = 0; op < border_; ++op) {
    if (!is_intensive_[At(op)] || !problem_.may_repeat[At(op)]) continue;
    int64_t bytes = 0;
    for (const int32_t write : problem_.writes[op]) bytes += CostToSave(write);
    const double share = static_cast<double>(bytes) / static_cast<double>(max_bytes_);
    // An item as large as everything that backward reads fits no share below the whole.
    if (share < 1) items_.push_back({op, std::llround(share * kWholeShare)});
  }
  std::vector<int64_t> best(kWholeShare + 1);
  is_taken_.assign(items_.size() * best.size(), false);
  for (size_t i = 0; i < items_.size(); ++i) {
    PollStop();
    const int64_t cost = problem_.cost[At(items_[i].op)];
    for (int64_t share = kWholeShare; share >= items_[i].weight; --share) {
      const int64_t with = best[static_cast<size_t>(share - items_[i].weight)] + cost;
      if (with <= best[static_cast<size_t>(share)]) continue;
      best[static_cast<size_t>(share)] = with;
      is_taken_[i * best.size() + static_cast<size_t>(share)] = true;
    }
  }
}

// Returns the operations whose results the knapsack doesn't save.
std::vector<bool> SavedValues::FindUnsaved(int64_t share) const {
  std::vector<bool> left_out = is_intensive_;
  for (size_t i = items_.size(); i-- > 0;) {
    const size_t at = i * (kWholeShare + 1) + static_cast<size_t>(share);
    if (!is_taken_[at]) continue;
    left_out[At(items_[i].op)] = false;
    share -= items_[i].weight;
  }
  return left_out;
}

std::vector<bool> SavedValues::Within(int64_t share) {
  if (share >= kWholeShare || max_bytes_ == 0) return is_needed_;
  const double bytes = static_cast<double>(share) / kWholeShare * static_cast<double>(max_bytes_);
  if (static_cast<double>(BytesOf(by_cut_)) <= bytes) return by_cut_;  // Step 1 suffices.
  // Step 2: the cut may also recompute the compute-intensive operations that the knapsack doesn't
  // save.
  std::vector<bool> may_rerun = FindUnsaved(share);
  if (may_rerun != last_may_rerun_) {
    last_cut_ = Cut(may_rerun);
    last_may_rerun_ = std::move(may_rerun);
  }
  return last_cut_;
}

namespace {

constexpr size_t kMaxOps = 50'000;
// Graphs of up to this many operations try all settings; larger ones try fewer.
constexpr size_t kMaxOpsForAll = 5'000;
constexpr int64_t kPercent = 100;

class TorchBudget : public PreparedRunSolver {
 public:
  explicit TorchBudget(const JointGraph& graph) : problem_(graph), values_(graph, problem_) {}

  bool has_backward() const { return values_.border() < problem_.op_count; }

  Knob knob() const override {
    const bool tries_all = static_cast<size_t>(problem_.op_count) <= kMaxOpsForAll;
    return {Knob::Kind::kSavedShare, 0, kPercent, kPercent, tries_all ? kPercent : 10};
  }

  Result<RunOutcome> Solve(int64_t percent, const SolveLimits&) override {
    LazyRuns runs(problem_);
    for (int32_t op = 0; op < values_.border(); ++op) runs.Run(OpId(op));
    runs.KeepOnly(values_.Within(percent * kWholeShare / kPercent));
    for (int32_t op = values_.border(); op < problem_.op_count; ++op) runs.Run(OpId(op));
    return RunOutcome{std::move(runs).Take(), false,
                      fmt::format("heuristic: activation_memory_budget = {:.2f}",
                                  static_cast<double>(percent) / kPercent)};
  }

 private:
  const RunProblem problem_;
  SavedValues values_;
};

}  // namespace

Result<std::unique_ptr<PreparedRunSolver>> PrepareTorchBudgetRuns(const JointGraph& graph,
                                                                  const SolveLimits&) {
  if (graph.ops().size() > kMaxOps) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("torch-budget is limited to {} operations of a training step; this one "
                    "has {}",
                    kMaxOps, graph.ops().size()));
  }
  auto solver = std::make_unique<TorchBudget>(graph);
  if (!solver->has_backward()) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("torch-budget saves values for the backward pass, but no operation "
                    "of \"{}\" has the phase \"backward\"",
                    graph.name()));
  }
  return std::unique_ptr<PreparedRunSolver>(std::move(solver));
}

}  // namespace ckplan
