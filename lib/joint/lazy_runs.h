// Builds a sequence of runs from decisions about memory: what is read and not there is run again,
// just before it is read, together with what of its ancestors is not there either.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/joint/run_problem.h"

namespace ckplan {

class LazyRuns {
 public:
  explicit LazyRuns(const RunProblem& problem);  // Keeps a reference to `problem`.

  // Runs the operation, and before it whatever makes those of its reads that are not in memory.
  void Run(OpId op);
  // Sees to it that the value is in memory; what is given from outside always is.
  void Provide(int32_t value);
  void ProvideResults();
  // Drops every value but these.
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
  std::vector<Frame> stack_;  // Depth-first without recursion: chains may be 100,000 long.
  Runs runs_;
};

}  // namespace ckplan
