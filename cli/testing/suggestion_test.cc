// Runs every command and every flag that the tests of testdata/cli show as a suggestion, in the
// folder of the test.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "cli/common/files.h"
#include "cli/testing/golden_case.h"
#include "cli/testing/work_folder.h"
#include "lib/planning/mip/mip.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

struct Suggestion {
  std::string command;
  bool is_example = false;  // Its sizes are examples, with which a typed budget may be too small.
};

// Returns the commands after "next: " and "for example: " in a program's output. A message in JSON
// ends at its quote.
std::vector<Suggestion> CommandsIn(const std::string& text) {
  struct Mark {
    std::string_view text;
    bool is_example;
  };
  constexpr std::array kMarks = {Mark{"next: ck", false}, Mark{"for example: ck", true}};
  std::vector<Suggestion> found;
  for (const Mark& mark : kMarks) {
    for (size_t at = text.find(mark.text); at != std::string::npos;
         at = text.find(mark.text, at + 1)) {
      const size_t begin = at + mark.text.size() - 2;
      const size_t end = text.find_first_of("\"\n", begin);
      found.push_back({text.substr(begin, end - begin), mark.is_example});
    }
  }
  return found;
}

// Returns `command` with the flags after "next: add ", up to " to write the plan".
std::vector<Suggestion> AdditionsIn(const std::string& text, const std::string& command) {
  constexpr std::string_view kMark = "next: add ";
  const size_t at = text.find(kMark);
  if (at == std::string::npos) return {};
  const size_t begin = at + kMark.size();
  return {{command + " " + text.substr(begin, text.find(" to ", begin) - begin), false}};
}

// Returns `command` with the value of a flag replaced or added.
std::string WithFlag(const std::string& command, const std::string& flag,
                     const std::string& value) {
  std::istringstream words(command);
  std::string text, word;
  while (words >> word) {
    const bool is_short = word == "-b" || word == "-a";
    const bool is_same = word == flag || (is_short && flag.starts_with("-" + word));
    if (is_same) words >> word;
    if (!is_same) text += word + " ";
  }
  return text + flag + " " + value;
}

size_t ModelsIn(const std::string& command) {
  std::istringstream words(command);
  size_t count = 0;
  std::string word;
  while (words >> word) {
    const bool is_input =
        word.starts_with("testdata/models/") || word.starts_with("testdata/graphs/");
    if (is_input) ++count;
  }
  return count;
}

// Returns `command` with each flag that a message says to try: "try --budget 1280". With several
// models, one of them may need more.
std::vector<Suggestion> RetriesIn(const std::string& text, const std::string& command) {
  constexpr std::string_view kMark = "try ";
  constexpr std::string_view kAlgorithm = "the algorithm ";
  const bool has_several = ModelsIn(command) > 1;
  std::vector<Suggestion> found;
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
    std::string_view rest = std::string_view(text).substr(at + kMark.size());
    std::string flag = "--algo";
    if (rest.starts_with(kAlgorithm)) {
      rest.remove_prefix(kAlgorithm.size());
    } else if (rest.starts_with("--")) {
      flag = rest.substr(0, rest.find(' '));
      rest.remove_prefix(flag.size() + 1);
    } else {
      continue;
    }
    const std::string value(rest.substr(0, rest.find_first_of(" \",\n")));
    std::string again = WithFlag(command, flag, value);
    if (rest.substr(value.size()).starts_with(", without the knob")) {
      again = std::regex_replace(again, std::regex(" --knob [^ ]+"), "");
    }
    found.push_back({again, has_several});
  }
  return found;
}

// Returns what `command` suggests in its output.
std::vector<Suggestion> SuggestionsIn(const std::string& text,
                                      const std::optional<std::string>& command) {
  std::vector<Suggestion> all = CommandsIn(text);
  const bool is_simple = command && command->find_first_of("|<>;&") == std::string::npos;
  if (!is_simple) return all;
  for (const auto& more : {AdditionsIn(text, *command), RetriesIn(text, *command)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// The command of a test; nothing if there are several, since it is unclear which one is meant.
std::optional<std::string> OnlyCommand(const GoldenCase& golden) {
  if (golden.commands.size() > 1) return std::nullopt;
  return golden.commands.front();
}

// Suggestions that cannot run here, and why.
bool LacksItsResource(const std::string& command, const std::string& test) {
  if (test == "plan_given_lower_sets") return true;  // It damages its plan afterwards.
  if (command.starts_with("ckexec") && kExecutor == nullptr) return true;
  const bool needs_solver = command.find("checkmate") != std::string::npos;
  return needs_solver && !HasMipSolver();
}

// Some tests remove the plan that they suggest to use.
constexpr std::string_view kKeepFiles = "rm() { :; }\n";

// Prepares the test's folder: its files, and what its own commands write.
void Prepare(const GoldenCase& golden, const WorkFolder& workplace) {
  std::string script(kKeepFiles);
  for (const std::string& command : golden.commands) script += command + "\n";
  for (const GoldenSection& section : golden.sections) {
    if (section.kind == "file") workplace.Write(section.name, section.text);
  }
  workplace.Run({script, "", golden.TextOf("stdin"), golden.environment});
}

std::vector<NamedCase> CasesOfCommands() {
  Result<std::vector<NamedCase>> cases = ReadCases(kProject / "testdata/cli");
  REQUIRE(cases.ok());
  return *std::move(cases);
}

void CheckRuns(const Suggestion& suggestion, const GoldenCase& golden,
               const WorkFolder& workplace) {
  CAPTURE(suggestion.command);
  const ProgramResult result =
      workplace.Run({suggestion.command, "", golden.TextOf("stdin"), golden.environment});
  CAPTURE(result.err);
  constexpr int kInfeasible = 4;
  CHECK((result.status == 0 || (suggestion.is_example && result.status == kInfeasible)));
}

TEST_CASE("suggestions: every command that a test of testdata/cli shows runs as printed") {
  std::set<std::string> seen;
  for (const NamedCase& named : CasesOfCommands()) {
    if (kHasSanitizers && seen.size() > 20) break;
    CAPTURE(named.name);
    const GoldenCase& golden = named.golden;
    for (const std::string_view kind : {"stdout", "stderr"}) {
      for (const Suggestion& suggestion : SuggestionsIn(golden.TextOf(kind), OnlyCommand(golden))) {
        if (LacksItsResource(suggestion.command, named.name)) continue;
        if (!seen.insert(suggestion.command).second) continue;
        const WorkFolder workplace;
        Prepare(golden, workplace);
        CheckRuns(suggestion, golden, workplace);
      }
    }
  }
  CHECK(seen.size() > 20);
}

TEST_CASE("suggestions: commands run as printed in a folder with a ckplan.toml") {
  constexpr std::string_view kSettings =
      "budget = \"90%\"\neffort = \"quick\"\n[plan]\nadded-time = \"20%\"\n";
  size_t count = 0;
  for (const NamedCase& named : CasesOfCommands()) {
    if (kHasSanitizers && count > 10) break;
    const GoldenCase& golden = named.golden;
    const std::optional<std::string> command = OnlyCommand(golden);
    const bool has_suggestion = command &&
                                !SuggestionsIn(golden.TextOf("stderr"), command).empty() &&
                                golden.TextOf("stderr").find("ckplan.toml") == std::string::npos;
    if (!has_suggestion || LacksItsResource(*command, named.name)) continue;
    CAPTURE(named.name);
    const WorkFolder workplace;
    Prepare(golden, workplace);
    if (fs::exists(workplace.PathOf("ckplan.toml"))) continue;
    workplace.Write("ckplan.toml", std::string(kSettings));
    const ProgramResult first = workplace.Run(
        {std::string(kKeepFiles) + *command, "", golden.TextOf("stdin"), golden.environment});
    for (const Suggestion& suggestion : SuggestionsIn(first.out + first.err, command)) {
      CheckRuns(suggestion, golden, workplace);
      ++count;
    }
  }
  CHECK(count > 10);
}

}  // namespace
}  // namespace ckplan
