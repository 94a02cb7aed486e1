#include "lib/problem/runs/lazy_runs.h"

#include <span>

#include "lib/base/stop.h"

namespace ckplan {

LazyRuns::LazyRuns(const RunProblem& problem)
    : problem_(problem), is_there_(static_cast<size_t>(problem.value_count)) {}

void LazyRuns::Run(OpId op) {
  stack_.push_back({op.index()});
  RunAll();
}

void LazyRuns::Provide(int32_t value) {
  const int32_t maker = problem_.maker[static_cast<size_t>(value)];
  if (maker < 0 || IsThere(value)) return;
  stack_.push_back({maker});
  RunAll();
}

void LazyRuns::ProvideResults() {
  for (int32_t u = 0; u < problem_.value_count; ++u) {
    if (problem_.is_result[static_cast<size_t>(u)]) Provide(u);
  }
}

void LazyRuns::KeepOnly(const std::vector<bool>& kept) {
  for (size_t u = 0; u < is_there_.size(); ++u) is_there_[u] = is_there_[u] && kept[u];
}

void LazyRuns::RunAll() {
  while (!stack_.empty()) {
    PollStop();
    Frame& frame = stack_.back();
    const std::span<const int32_t> reads = problem_.reads[frame.op];
    if (frame.reads_done < reads.size()) {
      const int32_t read = reads[frame.reads_done++];
      if (!IsThere(read)) stack_.push_back({problem_.maker[static_cast<size_t>(read)]});
      continue;
    }
    const int32_t op = frame.op;
    stack_.pop_back();
    runs_.emplace_back(op);
    for (const int32_t write : problem_.writes[op]) is_there_[static_cast<size_t>(write)] = true;
  }
}

}  // namespace ckplan
