#include "cli/common/guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <exception>
#include <initializer_list>
#include <new>
#include <system_error>

#include "cli/common/interrupt.h"
#include "cli/common/memory_limit.h"
#include "cli/common/message.h"
#include "cli/common/terminal.h"
#include "lib/base/check.h"
#include "lib/base/file.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

GuardedProgram guarded_program;

using Parts = std::initializer_list<std::string_view>;

void Write(std::string_view text) {
  [[maybe_unused]] const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
}

// Writes text inside a string of JSON. A character that would need more than a backslash becomes
// "?".
void WriteInJson(std::string_view text) {
  for (const char& c : text) {
    if (c == '"' || c == '\\') Write("\\");
    Write(c >= 0x20 && c < 0x7f ? std::string_view(&c, 1) : "?");
  }
}

// Writes the error like ErrorJson (cli/common/message.h), but without allocating memory.
void WriteErrorJson(std::string_view kind, int code, Parts parts) {
  char digits[8];
  const char* const end = std::to_chars(std::begin(digits), std::end(digits), code).ptr;
  Write(R"({"schema_version": "1.0", "level": "error", "kind": ")");
  Write(kind);
  Write(R"(", "exit_code": )");
  Write({digits, end});
  Write(R"(, "message": ")");
  for (const std::string_view part : parts) WriteInJson(part);
  Write("\", \"notes\": [], \"remedy\": null, \"least_bytes\": null}\n");
}

// Prints an error without allocating memory, and returns its exit code as a number.
int PrintPlainly(std::string_view kind, ExitCode code, Parts parts) {
  const int number = static_cast<int>(code);
  if (CurrentMessageForm() == MessageForm::kJson) {
    WriteErrorJson(kind, number, parts);
    return number;
  }
  Write(guarded_program.name);
  Write(": ");
  for (const std::string_view part : parts) Write(part);
  Write("\n");
  return number;
}

// The kind of an error where memory, threads or open files ran out.
constexpr std::string_view kOutOfResources = "out-of-resources";

int ReportOutOfMemory() {
  const ExitCode code = guarded_program.out_of_memory;
  const MemoryLimitWords words = DescribeMemoryLimit();
  if (words.limit.empty()) {
    return PrintPlainly(kOutOfResources, code, {"out of memory; ", guarded_program.remedy});
  }
  return PrintPlainly(
      kOutOfResources, code,
      {"this needs more memory than ", words.limit, "; raise it with ", words.setting});
}

bool IsOutOfFiles(const std::system_error& fault) {
  return fault.code() == std::errc::too_many_files_open ||
         fault.code() == std::errc::too_many_files_open_in_system;
}

int ReportOutOfFiles() {
  return PrintPlainly(
      kOutOfResources, ExitCode::kInput,
      {"the system allows no more open files (ulimit -n), and at least one more is needed"});
}

bool IsOutOfThreads(const std::system_error& fault) {
  return fault.code() == std::errc::resource_unavailable_try_again;
}

int ReportOutOfThreads() {
  const MemoryLimitWords words = DescribeMemoryLimit();
  const bool is_limited = !words.limit.empty();
  return PrintPlainly(
      kOutOfResources, ExitCode::kInput,
      {"cannot start a thread: the system allows no more (ulimit -u), or its stack does not fit "
       "in ",
       is_limited ? words.limit : "memory", is_limited ? "; raise it with " : "", words.setting});
}

int ReportFault(const char* fault) {
  return PrintPlainly(
      "internal", ExitCode::kInternal,
      {"internal fault: ", fault, "; please report it with the command line and the model"});
}

int ReportEscaped(const std::exception_ptr& exception) {
  try {
    if (exception) std::rethrow_exception(exception);
    return ReportFault("std::terminate was called without an exception");
  } catch (const OutOfMemory& shortage) {
    return PrintPlainly(kOutOfResources, ExitCode::kInfeasible, {shortage.what()});
  } catch (const std::bad_alloc&) {
    return ReportOutOfMemory();
  } catch (const std::system_error& fault) {
    if (IsOutOfFiles(fault)) return ReportOutOfFiles();
    return IsOutOfThreads(fault) ? ReportOutOfThreads() : ReportFault(fault.what());
  } catch (const std::exception& fault) {
    return ReportFault(fault.what());
  } catch (const Stopped&) {
    return ReportFault("a stop came where none is expected");
  }
}

// An exception has left a function that must not throw. There may be no memory left at all.
[[noreturn]] void EndProcess() {
  TemporaryName::RemoveAll();
  _exit(ReportEscaped(std::current_exception()));
}

// Removes temporary files when a signal ends the process. May only call functions that are safe in
// a signal handler. SA_RESETHAND resets the handler, so the raised signal then ends the process.
extern "C" void EndBySignal(int signal) {
  TemporaryName::RemoveAll();
  raise(signal);
}

// The program is stuck in a call that cannot be stopped, and this thread has noticed. Destructors
// of static objects must not run under the feet of that call.
void EndStuckProgram(const StuckCall& call) {
  const ExitCode code = call.was_interrupted ? ExitCode::kInterrupted : ExitCode::kTimeLimit;
  const std::string fault =
      call.was_interrupted || !call.time_limit
          ? fmt::format("interrupted during {}; nothing was written", call.what)
          : fmt::format("the time limit of {:g}s passed during {}; nothing was written",
                        std::chrono::duration<double>(*call.time_limit).count(), call.what);
  PrintError(MakeError(ErrorCode::kTimeout, fault), guarded_program.name, code);
  TemporaryName::RemoveAll();
  _exit(static_cast<int>(code));
}

void InstallSignalHandlers() {
  // A write beyond the limit on file sizes (ulimit -f) is an ordinary error.
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = EndBySignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU}) {
    struct sigaction old {};
    const bool is_default = sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_DFL;
    // A signal that the parent ignores stays ignored, as nohup(1) intends.
    if (is_default) sigaction(number, &action, nullptr);
  }
}

}  // namespace

int RunGuarded(const GuardedProgram& guarded, const std::function<int()>& program) {
  guarded_program = guarded;
  std::set_terminate(EndProcess);
  InstallSignalHandlers();
  SetEndOfStuckCalls(EndStuckProgram);
  try {
    return program();
  } catch (const std::exception&) {
    return ReportEscaped(std::current_exception());
  }
}

int RunProgram(const GuardedProgram& guarded, MainProgram program, int argc, char** argv) {
  return RunGuarded(guarded, [&] {
    const Result<ExitCode> code = program(std::vector<std::string>(argv + 1, argv + argc));
    if (code.ok()) return static_cast<int>(*code);
    PrintError(code.error(), guarded.name);
    return static_cast<int>(ExitCodeOf(code.error().code));
  });
}

}  // namespace ckplan
