#include "cli/common/guard.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "cli/common/exit_code.h"
#include "lib/base/check.h"
#include "lib/base/file.h"
#include "lib/base/stop.h"
#include "lib/base/units.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

// Returns the exit status of a child process that runs `program` with its output closed.
int StatusOfChild(const std::function<int()>& program, const GuardedProgram& guarded = {"ckplan"}) {
  const pid_t child = fork();
  if (child == 0) {
    // Otherwise the child would repeat output that its parent has not flushed.
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    _exit(RunGuarded(guarded, program));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("guard: a program's own status is returned") {
  CHECK(StatusOfChild([] { return 4; }) == 4);
}

TEST_CASE("guard: an escaped exception ends with 70") {
  CHECK(StatusOfChild([]() -> int { throw std::logic_error("broken"); }) == 70);
}

TEST_CASE("guard: out of memory ends with the program's own code, out of device memory with 4") {
  CHECK(StatusOfChild([]() -> int { throw std::bad_alloc(); }) == 3);
  CHECK(StatusOfChild([]() -> int { throw OutOfMemory("the GPU is full"); }) == 4);
  const GuardedProgram runs_models{"ckexec", ExitCode::kInfeasible, "take a smaller model"};
  CHECK(StatusOfChild([]() -> int { throw std::bad_alloc(); }, runs_models) == 4);
}

TEST_CASE("guard: out of threads or files ends with 3, other system errors with 70") {
  const auto fail = [](std::errc reason) {
    return StatusOfChild([=]() -> int { throw std::system_error(std::make_error_code(reason)); });
  };
  CHECK(fail(std::errc::resource_unavailable_try_again) == 3);
  CHECK(fail(std::errc::too_many_files_open) == 3);
  CHECK(fail(std::errc::too_many_files_open_in_system) == 3);
  CHECK(fail(std::errc::invalid_argument) == 70);
}

// Throws like a destructor that finds no memory.
template <typename Exception>
void FailQuietly(const Exception& exception) noexcept {
  const auto fail = [&] { throw exception; };
  fail();
}

TEST_CASE("guard: an exception in a function that must not throw ends with the same codes") {
  CHECK(StatusOfChild([] { return FailQuietly(std::bad_alloc()), 0; }) == 3);
  CHECK(StatusOfChild([] { return FailQuietly(std::logic_error("broken")), 0; }) == 70);
  CHECK(StatusOfChild([] { return FailQuietly(Stopped()), 0; }) == 70);
  CHECK(StatusOfChild([]() -> int { std::terminate(); }) == 70);
}

TEST_CASE("guard: such an end leaves no temporary file") {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json.XXXXXX";
  const int status = StatusOfChild([&] {
    std::ofstream(path) << "half a plan";
    const TemporaryName name(path);
    FailQuietly(std::bad_alloc());
    return 0;
  });
  CHECK(status == 3);
  CHECK(!std::filesystem::exists(path));
}

// Returns how a child ends that has a temporary file and gets the signal.
int EndOfChildBySignal(const std::string& path, int number) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);  // Even if the test's own parent ignores it.
    _exit(RunGuarded({"ckplan"}, [&] {
      const TemporaryName name(path);
      std::ofstream(path) << "half a plan";
      return raise(number);
    }));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_CASE("guard: a signal that ends the program leaves no temporary file") {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json.XXXXXX";
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU}) {
    CAPTURE(number);
    const int status = EndOfChildBySignal(path, number);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
    CHECK(!std::filesystem::exists(path));
  }
}

TEST_CASE(
    "guard: a kept file outlives the signal, and an ignored signal does not end the program") {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json";
  std::ofstream(path) << "a plan";
  CHECK(StatusOfChild([&] {
          TemporaryName name(path);
          name.Keep();
          TemporaryName::RemoveAll();
          return 0;
        }) == 0);
  CHECK(std::filesystem::exists(path));
  CHECK(StatusOfChild([] { return raise(SIGXFSZ); }) == 0);
  const auto before = signal(SIGHUP, SIG_IGN);  // As nohup(1) does.
  CHECK(StatusOfChild([] { return raise(SIGHUP); }) == 0);
  signal(SIGHUP, before);
}

TEST_CASE("guard: a failed internal check ends with 70") {
  CHECK(StatusOfChild([] {
          CKPLAN_CHECK(1 + 1 == 3, "a test breaks it");
          return 0;
        }) == static_cast<int>(ExitCode::kInternal));
}

TEST_CASE("guard: amounts that overflow end with 70, in either direction") {
  const auto ends_with_fault = [](const std::function<Bytes()>& sum) {
    return StatusOfChild([&] { return sum() == Bytes(0) ? 0 : 1; }) ==
           static_cast<int>(ExitCode::kInternal);
  };
  const Bytes min(std::numeric_limits<int64_t>::min());
  CHECK(ends_with_fault([] { return Bytes::Max() + Bytes(1); }));
  CHECK(ends_with_fault([&] { return min - Bytes(1); }));
  CHECK(ends_with_fault([] { return 2 * Bytes::Max(); }));
  CHECK(ends_with_fault([sum = Bytes::Max()]() mutable { return sum += Bytes(1); }));
  CHECK(ends_with_fault([difference = min]() mutable { return difference -= Bytes(1); }));
  CHECK_FALSE(ends_with_fault([] { return Bytes::Max() - Bytes::Max(); }));
}

TEST_CASE("exit codes: every kind of error has an exit code of the table") {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const ExitCode code = ExitCodeOf(static_cast<ErrorCode>(i));
    CAPTURE(i);
    CHECK(code != ExitCode::kOk);
    bool is_listed = false;
    for (const ExitCodeMeaning& row : kExitCodeMeanings) is_listed |= row.code == code;
    CHECK(is_listed);
  }
}

}  // namespace
}  // namespace ckplan
