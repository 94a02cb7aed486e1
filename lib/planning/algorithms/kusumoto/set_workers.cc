#include "lib/planning/algorithms/kusumoto/set_workers.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

constexpr int kMaxThreads = 4;
constexpr size_t kMinSetsForThreads = 512;
constexpr int64_t kTransitionsOfPoll = 32;  // A few nanoseconds.
constexpr size_t kMinSetsOfLevel = 8;       // Average; below it, threads mostly wait.

size_t ThreadCount(const DpLimits& limits) {
  if (limits.threads > 0) return static_cast<size_t>(limits.threads);
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
}

// The sets of all levels, which the threads of a pass take one by one.
class Pass {
 public:
  // After each level, worker 0 calls `after_level` with the number of transitions so far.
  Pass(const std::vector<std::vector<int32_t>>& levels, const SetWorkers::Body& body,
       const WorkMeter& meter, const std::function<void(int64_t)>& after_level, size_t threads)
      : levels_(levels),
        body_(body),
        meter_(meter),
        after_level_(after_level),
        next_(levels.size()),
        barrier_(static_cast<std::ptrdiff_t>(threads), CountLevel{this}) {}

  void Work(size_t worker) {
    for (size_t level = 0; level < levels_.size(); ++level) {
      if (!has_failed_) {
        KeepFailure([&] { WorkOn(level, worker); });
      }
      barrier_.arrive_and_wait();
      if (worker == 0 && !has_failed_) {
        KeepFailure([&] { after_level_(transitions_); });
      }
    }
  }
  // Removes a thread that failed to start.
  void Leave() { barrier_.arrive_and_drop(); }

  void Rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Runs while all threads wait for one another.
  struct CountLevel {
    Pass* pass;
    void operator()() noexcept { pass->transitions_ = pass->meter_.transitions(); }
  };

  // Keeps an exception for the thread that began the pass; the others only stop.
  template <typename Part>
  void KeepFailure(Part part) {
    try {
      part();
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      failure_ = std::current_exception();
      has_failed_ = true;
    }
  }

  void WorkOn(size_t level, size_t worker) {
    const std::vector<int32_t>& sets = levels_[level];
    for (size_t i = next_[level]++; i < sets.size() && !meter_.is_over(); i = next_[level]++) {
      body_(worker, sets[i]);
    }
  }

  const std::vector<std::vector<int32_t>>& levels_;
  const SetWorkers::Body& body_;
  const WorkMeter& meter_;
  const std::function<void(int64_t)>& after_level_;
  int64_t transitions_ = 0;                // Transitions of the completed levels.
  std::vector<std::atomic<size_t>> next_;  // For each level, the position of the next set.
  std::barrier<CountLevel> barrier_;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

SetWorkers::SetWorkers(const LowerSetFamily& family, const DpLimits& limits)
    : family_(family), meter_(family.size(), limits) {
  const size_t threads = IsWide(static_cast<size_t>(family.size())) ? ThreadCount(limits) : 1;
  for (size_t i = 0; i < threads; ++i) finders_.emplace_back(family);
}

bool SetWorkers::IsWide(size_t set_count) const {
  const auto levels = static_cast<size_t>(family_.whole().size) + 1;
  return set_count >= kMinSetsForThreads && set_count >= kMinSetsOfLevel * levels;
}

std::vector<SetWorkers::Level> SetWorkers::LevelsOf(std::span<const int32_t> sets) const {
  std::vector<Level> levels(static_cast<size_t>(family_.whole().size) + 1);
  for (const int32_t set : sets) {
    levels[static_cast<size_t>(family_.facts(set).size)].push_back(set);
  }
  std::erase_if(levels, [](const Level& level) { return level.empty(); });
  return levels;
}

Result<Done> SetWorkers::RunUpwards(std::span<const int32_t> sets, const Body& body) {
  return Run(LevelsOf(sets), sets.size(), body);
}

Result<Done> SetWorkers::RunDownwards(std::span<const int32_t> sets, const Body& body) {
  std::vector<Level> levels = LevelsOf(sets);
  std::reverse(levels.begin(), levels.end());
  return Run(levels, sets.size(), body);
}

Result<Done> SetWorkers::Run(const std::vector<Level>& levels, size_t set_count, const Body& body) {
  if (count() == 1 || !IsWide(set_count)) return RunSequentially(levels, body);
  RunOnThreads(levels, body);
  return meter_.Check();
}

Result<Done> SetWorkers::RunSequentially(const std::vector<Level>& levels, const Body& body) {
  for (const Level& level : levels) {
    for (const int32_t set : level) {
      CKPLAN_RETURN_IF_ERROR(meter_.Check());
      body(0, set);
    }
    PollFor(meter_.transitions());
  }
  return meter_.Check();
}

void SetWorkers::PollFor(int64_t transitions) {
  const int64_t work = (transitions - polled_) / kTransitionsOfPoll;
  polled_ += work * kTransitionsOfPoll;
  PollStop(work);
}

void SetWorkers::RunOnThreads(const std::vector<Level>& levels, const Body& body) {
  const std::function<void(int64_t)> poll = [this](int64_t done) { PollFor(done); };
  Pass pass(levels, body, meter_, poll, count());
  std::vector<std::thread> threads;
  threads.reserve(count());
  while (threads.size() + 1 < count()) {
    try {
      threads.emplace_back([&pass, worker = threads.size() + 1] { pass.Work(worker); });
    } catch (const std::exception&) {  // Out of threads or memory.
      break;
    }
  }
  for (size_t missing = threads.size() + 1; missing < count(); ++missing) pass.Leave();
  pass.Work(0);
  for (std::thread& thread : threads) thread.join();
  pass.Rethrow();
}

}  // namespace ckplan
