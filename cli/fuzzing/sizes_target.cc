#include <algorithm>
#include <string>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/npy.h"
#include "cli/common/request_flags.h"
#include "cli/common/size_arg.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/set_input.h"

namespace ckplan {
namespace {

void ReadOneValue(std::string_view text) {
  if (const auto size = ParseSize(text, "--size"); size.ok()) {
    CKPLAN_CHECK(*size >= Bytes(0), "a size is not negative");
    const auto again = ParseSize(std::to_string(size->count()) + "B", "--size");
    CKPLAN_CHECK(!again.ok() || *again == *size, "a size written in bytes is unchanged");
  }
  for (const BudgetForms forms :
       {BudgetForms{true, true, true}, BudgetForms{}, BudgetForms{false, false}}) {
    const auto budget = ParseBudget(text, "--budget", forms);
    if (!budget.ok()) continue;
    CKPLAN_CHECK(budget->is_given(), "a parsed budget counts as given");
    CKPLAN_CHECK(forms.percent || budget->kind == Budget::Kind::kBytes,
                 "a budget in percent is parsed only where it is allowed");
  }
  if (const auto duration = ParseDuration(text, "--time-limit"); duration.ok()) {
    CKPLAN_CHECK(duration->count() >= 0, "a duration is not negative");
    CKPLAN_CHECK(*duration <= std::chrono::hours(24), "a duration is at most a day");
  }
  if (const auto number = ParseInteger(text, "--number", -3, 1000); number.ok()) {
    CKPLAN_CHECK(*number >= -3 && *number <= 1000, "an integer lies in its range");
  }
}

// A NumPy array as the contents of an input.
void ReadContents(const std::string& bytes) {
  if (const auto text = NpyAsText(bytes, "a.npy"); text.ok()) {
    CKPLAN_CHECK(ParseSetInput("x=" + *text).ok(), "an array can be set as an input");
  }
  const Result<SetInput> input = ParseSetInput(bytes);
  if (!input.ok()) return;
  const Result<SetInput> again = ParseSetInput(TextOf(*input));
  CKPLAN_CHECK(again.ok() && again->dims == input->dims && again->is_real == input->is_real &&
                   again->ints == input->ints && again->reals == input->reals,
               "written contents can be read");
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<PlanRequest> ReadRequest(const std::vector<std::string>& arguments) {
  CommandLine line("ckplan plan", "ckplan plan model.onnx", "plan one model");
  RequestFlags flags;
  flags.Add(line, "algorithm");  // Decisions are left out because they are read from a file.
  flags.Add(line, RequestFlags::Group::kPlanning);
  flags.Add(line, RequestFlags::Group::kReading);
  std::string model;
  line.OptionalPositional("MODEL", "the model", &model);
  CKPLAN_ASSIGN_OR_RETURN(const CommandLine::Outcome outcome, line.Parse(arguments));
  if (outcome == CommandLine::Outcome::kHelp) return MakeError(ErrorCode::kUsage, line.Help());
  return flags.Read();
}

// Requests are written as flags separated by blanks, as shell words.
bool IsPlain(const std::string& argument) { return ShellWord(argument) == argument; }

// Patterns may be in a file, whose name is arbitrary.
bool NamesFile(const std::string& argument) { return argument.find('@') != std::string::npos; }

void ReadArguments(const std::vector<std::string>& arguments) {
  if (std::any_of(arguments.begin(), arguments.end(), NamesFile)) return;
  const Result<PlanRequest> request = ReadRequest(arguments);
  if (!request.ok()) {
    CKPLAN_CHECK(!MessageOf(request.error()).empty(), "an error has a message");
    return;
  }
  if (!std::all_of(arguments.begin(), arguments.end(), IsPlain)) return;
  std::vector<std::string> flags = Split(FlagsFor(*request), ' ');
  std::erase(flags, "");
  const Result<PlanRequest> again = ReadRequest(flags);
  CKPLAN_CHECK(again.ok(), "a request's flags can be parsed: " + FlagsFor(*request));
  PlanRequest meant = *again;
  meant.implied = request->implied;
  CKPLAN_CHECK(meant == *request,
               "a request's flags describe the same request: " + FlagsFor(*request));
}

}  // namespace

// A line is one value; several lines are also tried as a command's arguments.
void FuzzSizes(FuzzInput input) {
  ReadContents(std::string(TextOf(input)));
  const std::vector<std::string> lines = Split(TextOf(input), '\n');
  for (const std::string& text : lines) ReadOneValue(text);
  ReadArguments(lines);
}

}  // namespace ckplan
