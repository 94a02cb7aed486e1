// Builds a sequence of runs from decisions about memory: a value that is read but not in memory is
// made again just before the read, together with its ancestors that are not in memory either.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

class LazyRuns {
 public:
  explicit LazyRuns(const RunProblem& problem);  // Keeps a reference to `problem`.

  // Runs the operation, preceded by the makers of those reads that are not in memory.
  void Run(OpId op);
  // Makes the value unless it is in memory. Values given from outside always are.
  void Provide(int32_t value);
  void ProvideResults();
  // Drops every value except these.
  void KeepOnly(const std::vector<bool>& kept);
  void Drop(int32_t value) { is_there_[static_cast<size_t>(value)] = false; }
  bool IsThere(int32_t value) const { return is_there_[static_cast<size_t>(value)]; }

  const Runs& runs() const { return runs_; }
  Runs Take() && { return std::move(runs_); }

 private:
  struct Frame {
    int32_t op;
    size_t reads_done = 0;
  };
  void RunAll();

  const RunProblem& problem_;
  std::vector<bool> is_there_;
  std::vector<Frame> stack_;  // Depth-first without recursion: a chain may have 100,000 operations.
  Runs runs_;
};

}  // namespace ckplan
