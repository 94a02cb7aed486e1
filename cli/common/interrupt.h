// Turns Ctrl-C and the time limit into stops of the running work.
//
// There are two stops, one soon after the other. At the first, searches end with their best plan so
// far; a search without a plan may still complete its current one. At the second, all work ends
// wherever it is (lib/base/stop.h), including reading files. A run can therefore exceed the time
// limit by a tenth of a second, a sixteenth of the elapsed time, and the time that unwinding takes.
//
// Library calls may never poll (lib/base/stop.h). If such a call is still running a second after
// the second stop, the process ends, because nothing else would end the call.
//
// While an Interrupt exists, the first Ctrl-C requests both stops. A second Ctrl-C is handled as it
// was before the Interrupt, which ends the program. Only one Interrupt may exist at a time, and it
// belongs to the thread that creates it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/base/stop.h"

namespace ckplan {

// A call that is still running although all work was asked to stop.
struct StuckCall {
  std::string what;  // The name in its UnpolledCall.
  bool was_interrupted = false;
  std::optional<std::chrono::milliseconds> time_limit;
};

// Sets the function that an Interrupt calls for a stuck call: it reports the call and ends the
// process. Without one, the call keeps running.
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
  // The time of the next stop or check for stuck calls. Only the watcher uses it once it runs.
  Clock::time_point deadline_;
  uint64_t unpolled_call_ = 0;  // The UnpolledCall that was running at the last check.
  std::stop_source searches_;
  std::stop_source everything_;
  const StopScope scope_{everything_.get_token()};
  std::thread watcher_;
};

}  // namespace ckplan
