// Runs every command that the tests of testdata/cli show as a suggestion, in the folder of the
// test.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/common/files.h"
#include "cli/testing/golden_file.h"
#include "cli/testing/workplace.h"
#include "lib/mip/mip.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

struct Suggestion {
  std::string command;
  bool is_example = false;  // Its sizes are examples, with which a typed budget may be too small.
};

// Returns the commands after "next: " and "for example: " in a test's expected output. A message in
// JSON ends at its quote.
std::vector<Suggestion> SuggestionsIn(const std::string& text) {
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

// The command of a test with what it is told to add, if "next: add -o plan.json" can be followed by
// appending to it.
std::vector<Suggestion> AdditionsIn(const std::string& text, const std::string& command) {
  constexpr std::string_view kMark = "next: add ";
  const size_t at = text.find(kMark);
  const bool is_simple = command.find_first_of("|<>;&") == std::string::npos;
  if (at == std::string::npos || !is_simple) return {};
  const size_t begin = at + kMark.size();
  return {{command + " " + text.substr(begin, text.find(" to ", begin) - begin), false}};
}

std::vector<Suggestion> SuggestionsOf(const GoldenFile& file) {
  std::vector<Suggestion> all;
  for (const std::string_view kind : {"stdout", "stderr"}) {
    const std::string text = file.TextOf(kind);
    std::vector<Suggestion> some = SuggestionsIn(text);
    all.insert(all.end(), some.begin(), some.end());
    if (file.commands.size() > 1) continue;  // It is unclear which command is meant.
    some = AdditionsIn(text, file.commands.front());
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// Suggestions that cannot run here, and why.
bool LacksItsResource(const std::string& command, const std::string& test) {
  if (test == "plan_given_lower_sets.test") return true;  // It damages its plan afterwards.
  if (command.starts_with("ckexec") && kExecutor == nullptr) return true;
  const bool needs_solver = command.find("checkmate") != std::string::npos;
  return needs_solver && !HasMipSolver();
}

// Prepares the test's folder: its files, and what its own commands write.
void Prepare(const GoldenFile& file, const Workplace& workplace) {
  std::string script = "rm() { :; }\n";  // Some tests remove the plan that they suggest to use.
  for (const std::string& command : file.commands) script += command + "\n";
  for (const GoldenSection& section : file.sections) {
    if (section.kind == "file") workplace.Write(section.name, section.text);
  }
  workplace.Run({script, "", file.TextOf("stdin"), file.environment});
}

TEST_CASE("suggestions: every command that a test of testdata/cli shows runs as printed") {
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(kProject / "testdata/cli")) {
    if (kHasSanitizers && seen.size() > 20) break;
    if (entry.path().extension() != ".test") continue;
    const Result<GoldenFile> file = ParseGoldenFile(*ReadWholeFile(entry.path().string()));
    REQUIRE(file.ok());
    for (const Suggestion& suggestion : SuggestionsOf(*file)) {
      if (LacksItsResource(suggestion.command, entry.path().filename().string())) continue;
      if (!seen.insert(suggestion.command).second) continue;
      CAPTURE(entry.path().filename().string());
      CAPTURE(suggestion.command);
      const Workplace workplace;
      Prepare(*file, workplace);
      const ProgramResult result = workplace.Run({suggestion.command, "", "", file->environment});
      CAPTURE(result.err);
      constexpr int kInfeasible = 4;
      CHECK((result.status == 0 || (suggestion.is_example && result.status == kInfeasible)));
    }
  }
  CHECK(seen.size() > 20);
}

}  // namespace
}  // namespace ckplan
