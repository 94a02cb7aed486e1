#include "cli/common/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// A signal handler may do little more than write to a pipe; a thread reads the pipe and does the
// rest.
int signal_pipe[2] = {-1, -1};
std::atomic<bool> has_signal = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

constexpr char kInterruptByte = 'i';
constexpr char kEndByte = 'e';

void WriteToPipe(char byte) {
  const int saved_errno = errno;
  [[maybe_unused]] const ssize_t count = write(signal_pipe[1], &byte, 1);
  errno = saved_errno;
}

EndStuckCall end_stuck_call = nullptr;

struct sigaction old_interrupt {};  // How Ctrl-C ends the program.

extern "C" void HandleInterrupt(int) {
  sigaction(SIGINT, &old_interrupt, nullptr);
  has_signal = true;
  WriteToPipe(kInterruptByte);
}

void InstallInterruptHandler() {
  struct sigaction action {};
  action.sa_handler = HandleInterrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_interrupt);
}

int MillisecondsUntil(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

}  // namespace

void SetEndOfStuckCalls(EndStuckCall end) { end_stuck_call = end; }

Interrupt::Interrupt(std::optional<std::chrono::milliseconds> time_limit)
    : time_limit_(time_limit),
      deadline_(time_limit ? start_ + *time_limit : Clock::time_point::max()) {
  if (pipe2(signal_pipe, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  has_signal = false;
  if (time_limit && time_limit->count() == 0)
    StopSearches();  // A limit of zero does not wait for the thread.
  watcher_ = std::thread([this] { Watch(); });
  InstallInterruptHandler();
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_interrupt, nullptr);
  WriteToPipe(kEndByte);
  watcher_.join();
  close(signal_pipe[0]);
  close(signal_pipe[1]);
}

bool Interrupt::was_interrupted() const { return has_signal; }

// The second stop follows after a short time in which searches may complete a plan.
void Interrupt::StopSearches() {
  constexpr std::chrono::milliseconds kLeast(100);
  constexpr int kShare = 16;
  const Clock::time_point now = Clock::now();
  searches_.request_stop();
  deadline_ = now + kLeast + (now - start_) / kShare;
}

void Interrupt::StopEverything() {
  constexpr std::chrono::milliseconds kLongestCall(1000);
  everything_.request_stop();
  unpolled_call_ = UnpolledCall::Running();
  deadline_ = end_stuck_call == nullptr ? Clock::time_point::max() : Clock::now() + kLongestCall;
}

// A call is stuck if it was also running at the previous check: work that polls has ended by then.
void Interrupt::EndIfStuck() {
  const uint64_t before = unpolled_call_;
  StopEverything();
  if (before == 0 || unpolled_call_ != before) return;
  UnpolledCall::IfRunning(before, [this](const std::string& what) {
    end_stuck_call({what, was_interrupted(), time_limit_});
  });
}

void Interrupt::Watch() {
  for (;;) {
    pollfd pipe_end{signal_pipe[0], POLLIN, 0};
    const int ready = poll(&pipe_end, 1, HasDeadline() ? MillisecondsUntil(deadline_) : -1);
    if (ready == 0) {
      if (everything_.stop_requested()) {
        EndIfStuck();
      } else if (searches_.stop_requested()) {
        StopEverything();
      } else {
        StopSearches();
      }
      continue;
    }
    char byte = 0;
    if (ready < 0 || read(signal_pipe[0], &byte, 1) != 1) continue;
    if (byte == kEndByte) return;
    if (!searches_.stop_requested()) StopSearches();
  }
}

}  // namespace ckplan
