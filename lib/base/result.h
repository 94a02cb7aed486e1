// Errors as values: a Result<T> is a T or an Error.
//
//   Result<Bytes> ParseSize(std::string_view text);
//
//   CKPLAN_ASSIGN_OR_RETURN(const Bytes size, ParseSize(text));   // returns the error upwards
//
// An Error says what is wrong, where, and what to do; only cli/ turns its code into an exit status.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/check.h"

namespace ckplan {

enum class ErrorCode {
  kUsage,         // The command line or configuration is wrong.
  kInvalidInput,  // A file is damaged, contradictory, or its sizes overflow.
  kUnsupported,   // The input is valid, but this part of ckplan does not support it.
  kInfeasible,    // No plan of this algorithm fits the budget.
  kTimeout,       // A time limit ended the search without a feasible plan.
  kCheckFailed,   // A plan failed the checker.
  kIo,            // A file cannot be read or written.
  kInternal,      // A bug in ckplan.
};

// Settings that would help. The library names fields of PlanRequest (lib/planning/plan/request.h);
// each program prints them as its users enter them, such as "try --budget 8611000000".
struct Remedy {
  struct Setting {
    std::string name;   // For example "budget".
    std::string value;  // For example "8611000000"; may be empty.
  };
  std::string advice;  // The words before the settings, such as "try".
  std::vector<Setting> settings;
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;             // One line: what, where, what to do.
  std::vector<std::string> notes;  // Further lines, printed below the message.
  Remedy remedy = {};              // Empty if no setting helps.
};

inline Error MakeError(ErrorCode code, std::string message) {
  return {code, std::move(message), {}};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    CKPLAN_CHECK(ok(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T& value() & {
    CKPLAN_CHECK(ok(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T&& value() && {
    CKPLAN_CHECK(ok(), std::get<1>(state_).message);
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const& {
    CKPLAN_CHECK(!ok(), "error() is called only on a Result that holds an error");
    return std::get<1>(state_);
  }
  Error&& error() && {
    CKPLAN_CHECK(!ok(), "error() is called only on a Result that holds an error");
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value: Result<Done> f() { ...; return Done{}; }
struct Done {};

}  // namespace ckplan

#define CKPLAN_CONCAT_INNER(a, b) a##b
#define CKPLAN_CONCAT(a, b) CKPLAN_CONCAT_INNER(a, b)

// Declares `declaration` from the value of a Result, or returns its Error from this function.
#define CKPLAN_ASSIGN_OR_RETURN(declaration, expression) \
  CKPLAN_ASSIGN_OR_RETURN_INNER(CKPLAN_CONCAT(ckplan_result_, __LINE__), declaration, expression)
#define CKPLAN_ASSIGN_OR_RETURN_INNER(name, declaration, expression) \
  auto name = (expression);                                          \
  if (!name.ok()) return std::move(name).error();                    \
  declaration = std::move(name).value()

// Returns the Error of a Result from this function, if it holds one.
#define CKPLAN_RETURN_IF_ERROR(expression)                        \
  do {                                                            \
    if (auto ckplan_status = (expression); !ckplan_status.ok()) { \
      return std::move(ckplan_status).error();                    \
    }                                                             \
  } while (false)
