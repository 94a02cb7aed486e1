// Turns Ctrl-C and the time limit into stops of the running work.
//
// There are two stops, one soon after the other. At the first, searches end and their best plan so
// far counts; a search without a plan may still complete the one at hand. At the second, all work
// ends wherever it is (lib/base/stop.h), including reading. The time limit is therefore exceeded by
// a tenth of a second plus a sixteenth of the elapsed time, and the time that leaving takes.
//
// A library that the work calls may never poll (lib/base/stop.h). If such a call lasts a
// second longer than the second stop, the process ends: nothing else would end it.
//
// While an Interrupt lives, the first Ctrl-C requests both stops. The second Ctrl-C does what it
// did before, which ends the program. Only one Interrupt may live at a time, and it belongs to the
// thread that makes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/base/stop.h"

namespace ckplan {

// A call that goes on after all work was asked to stop.
struct StuckCall {
  std::string what;  // Its name, as UnpolledCall has it.
  bool was_interrupted = false;
  std::optional<std::chrono::milliseconds> time_limit;
};

// Sets what an Interrupt does about such a call: a function that reports it and ends the process.
// Without one, the call goes on.
using EndStuckCall = void (*)(const StuckCall& call);
void SetEndOfStuckCalls(EndStuckCall end);

class Interrupt {
 public:
  // Throws std::system_error if there are too many open files or threads.
  explicit Interrupt(std::optional<std::chrono::milliseconds> time_limit);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  std::stop_token token() const { return searches_.get_token(); }  // The first stop.
  bool was_interrupted() const;  // True once the signal has arrived.

 private:
  using Clock = std::chrono::steady_clock;

  void StopSearches();
  void StopEverything();
  void EndIfStuck();
  void Watch();
  bool HasDeadline() const { return deadline_ != Clock::time_point::max(); }

  const Clock::time_point start_ = Clock::now();
  const std::optional<std::chrono::milliseconds> time_limit_;
  // Time of the next stop, or of the next look at a call; only the watcher uses it once it runs.
  Clock::time_point deadline_;
  uint64_t unpolled_call_ = 0;  // The UnpolledCall that ran at the last look.
  std::stop_source searches_;
  std::stop_source everything_;
  const StopScope scope_{everything_.get_token()};
  std::thread watcher_;
};

}  // namespace ckplan
