// Ctrl-C and the time limit, as stops of the work that is under way.
//
// There are two, one soon after the other. At the first, searches end and their best plan so far
// counts; whoever has none may still complete the plan at hand. At the second, everything ends
// wherever it is (lib/base/stop.h), reading included: so the limit is exceeded by a tenth of a
// second and a sixteenth of the time that has passed, and by what it takes to leave.
//
// While an Interrupt lives, the first Ctrl-C asks for both stops; the second one does what it did
// before, which ends the program. Only one may live at a time, and it belongs to the thread that
// makes it.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>

#include "lib/base/stop.h"

namespace ckplan {

class Interrupt {
 public:
  // std::system_error: there are too many open files, or threads.
  explicit Interrupt(std::optional<std::chrono::milliseconds> time_limit);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  std::stop_token token() const { return searches_.get_token(); }  // The first stop.
  bool was_interrupted() const;  // True as soon as the signal has come.

 private:
  using Clock = std::chrono::steady_clock;

  void StopSearches();
  void Watch();
  bool HasDeadline() const { return deadline_ != Clock::time_point::max(); }

  const Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_;  // Of the next stop; of the watcher alone once that runs.
  std::stop_source searches_;
  std::stop_source everything_;
  const StopScope scope_{everything_.get_token()};
  std::thread watcher_;
};

}  // namespace ckplan
