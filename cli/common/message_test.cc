#include "cli/common/message.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "cli/common/guard.h"

namespace ckplan {
namespace {

using nlohmann::json;

// What a child process that runs `program` writes on standard error, with messages as JSON.
std::string ErrorsOfChild(const std::function<int()>& program) {
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);  // Otherwise the child would print again what its parent has not flushed.
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    SetMessageForm(MessageForm::kJson);
    _exit(RunGuarded({"ckplan"}, program));
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

TEST_CASE("messages: the form is what the arguments say, wherever it stands in them") {
  CHECK(MessageFormIn({"plan", "m.onnx"}) == MessageForm::kText);
  CHECK(MessageFormIn({"plan", "--messages", "json", "m.onnx"}) == MessageForm::kJson);
  CHECK(MessageFormIn({"--no-such", "--messages=json"}) == MessageForm::kJson);
  CHECK(MessageFormIn({"plan", "--messages", "text"}) == MessageForm::kText);
  CHECK(MessageFormIn({"plan", "json", "--messages"}) == MessageForm::kText);
}

TEST_CASE("messages: an error has its remedy in words and as data") {
  const Error error{ErrorCode::kInfeasible, "no plan", {"a \"note\""}, {"try", {{"budget", "17"}}}};
  CHECK(json::parse(ErrorJson(error, ExitCode::kInfeasible)) == json::parse(R"({
    "schema_version": "1.0", "level": "error", "kind": "infeasible", "exit_code": 4,
    "message": "no plan; try --budget 17", "notes": ["a \"note\""],
    "remedy": {"advice": "try", "settings": [{"field": "budget", "flag": "--budget", "value": "17"}]},
    "least_bytes": 17})"));
}

TEST_CASE(
    "messages: the least is a budget on the peak or on the total, in bytes, that is refused") {
  struct Case {
    ErrorCode code;
    Remedy::Setting setting;
    json least;
  };
  const Case cases[] = {
      {ErrorCode::kInfeasible, {"total_budget", "99"}, 99},
      {ErrorCode::kInfeasible, {"paper_budget", "min"}, nullptr},
      {ErrorCode::kInfeasible, {"budget", ""}, nullptr},
      {ErrorCode::kInfeasible, {"budget", "60%"}, nullptr},
      {ErrorCode::kUsage, {"budget", "60"}, nullptr},
  };
  for (const Case& row : cases) {
    CAPTURE(row.setting.value);
    const Error error{row.code, "", {}, {"try", {row.setting}}};
    CHECK(json::parse(ErrorJson(error, ExitCodeOf(row.code)))["least_bytes"] == row.least);
  }
}

TEST_CASE("messages: an exit code that is not the error's own has a kind of its own") {
  const auto kind = [](ErrorCode code, ExitCode exit) {
    return json::parse(ErrorJson(MakeError(code, ""), exit))["kind"].get<std::string>();
  };
  CHECK(kind(ErrorCode::kIo, ExitCode::kInput) == "io");
  CHECK(kind(ErrorCode::kCheckFailed, ExitCode::kDifferent) == "limit");
  CHECK(kind(ErrorCode::kTimeout, ExitCode::kInterrupted) == "interrupted");
  CHECK(kind(ErrorCode::kCheckFailed, ExitCode::kInput) == "several");
}

TEST_CASE("messages: names from outside can neither end a line nor command a terminal") {
  const std::string line =
      ErrorJson(MakeError(ErrorCode::kIo, "a\nb\x1b[2J\xff"), ExitCode::kInput);
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(json::accept(line));
}

TEST_CASE("messages: what escapes from a program has the keys of every other error") {
  json keys = json::parse(ErrorJson(MakeError(ErrorCode::kInternal, ""), ExitCode::kInternal));
  struct Case {
    std::function<int()> program;
    const char* kind;
    int exit_code;
  };
  const Case cases[] = {
      {[]() -> int { throw std::bad_alloc(); }, "out-of-resources", 3},
      {[]() -> int { throw std::logic_error("a \"quoted\"\n\\ fault"); }, "internal", 70},
      {[]() -> int {
         throw std::system_error(std::make_error_code(std::errc::too_many_files_open));
       },
       "out-of-resources", 3},
      {[]() -> int { std::terminate(); }, "internal", 70},
  };
  for (const Case& row : cases) {
    const std::string text = ErrorsOfChild(row.program);
    CAPTURE(text);
    const json error = json::parse(text);
    CHECK(error["kind"] == row.kind);
    CHECK(error["exit_code"] == row.exit_code);
    REQUIRE(error.size() == keys.size());
    for (const auto& field : keys.items()) CHECK(error.contains(field.key()));
  }
  const json quoted = json::parse(ErrorsOfChild(cases[1].program));
  CHECK(quoted["message"].get<std::string>().find("a \"quoted\"?\\ fault") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
