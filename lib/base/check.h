// Invariants of our own code. A broken invariant is a bug in ckplan, never the user's fault.
#pragma once

#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace ckplan {

// Prints where and why a check failed on stderr and ends the process with exit code 70 (internal
// fault).
[[noreturn]] void FailCheck(std::string_view file, int line, std::string_view condition,
                            std::string_view why);

}  // namespace ckplan

// Ends the process with exit code 70 unless `condition` holds. `why` states the expectation, since
// the message reads "internal fault: expected that <why>".
#define CKPLAN_CHECK(condition, why)                              \
  do {                                                            \
    if (!(condition)) {                                           \
      ::ckplan::FailCheck(__FILE__, __LINE__, #condition, (why)); \
    }                                                             \
  } while (false)

namespace ckplan {

// Thrown when a function that returns no error runs out of memory, for example when a GPU loads a
// kernel's code at its first run. The program then exits with its out-of-memory code.
class OutOfMemory : public std::bad_alloc {
 public:
  // `message` says what ran out, where, and what to do.
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace ckplan
