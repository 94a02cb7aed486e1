// Runs the built programs against the cases of testdata/cli/*.test, each a test case of its own,
// and against every console block and picture of README.md and docs/. `--update-golden` writes the
// programs' output into those files instead of comparing; review that difference like code.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>

#include "cli/ckplan/commands.h"
#include "cli/common/files.h"
#include "cli/testing/golden_case.h"
#include "cli/testing/run_program.h"
#include "cli/testing/work_folder.h"
#include "lib/planning/mip/mip.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

bool updates_golden = false;

bool CanRun(const std::vector<std::string>& commands) {
  if (kExecutor != nullptr) return true;
  return std::none_of(commands.begin(), commands.end(), [](const std::string& command) {
    return command.ends_with("ckexec") || command.find("ckexec ") != std::string::npos;
  });
}

// Returns whether this build can print the expected text. Without a solver checkmate has no plans,
// and best may have other plans.
bool HasItsSolver(const std::vector<std::string>& commands, const std::string& expected) {
  const auto has = [&](const char* name) { return expected.find(name) != std::string::npos; };
  if (HasMipSolver() || (!has("checkmate") && !has("best"))) return true;
  return std::all_of(commands.begin(), commands.end(), [](const std::string& command) {
    return command.starts_with("ckplan algos");
  });
}

std::string Joined(const std::vector<std::string>& commands) {
  std::string script;
  for (const std::string& command : commands) script += command + "\n";
  return script;
}

std::vector<fs::path> FilesEndingIn(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Times are the only output on a terminal that differs from run to run: "0.84 s" becomes "#.## s".
std::string WithoutTimes(const std::string& text) {
  constexpr std::string_view kUnit = " s";
  constexpr std::string_view kNumber = "0123456789.";
  std::string result;
  size_t copied = 0;
  for (size_t at = text.find(kUnit); at != std::string::npos; at = text.find(kUnit, at + 1)) {
    const size_t after = at + kUnit.size();
    const bool is_word = after < text.size() && std::isalnum(text[after]) != 0;
    const size_t begin = at == 0 ? 0 : text.find_last_not_of(kNumber, at - 1) + 1;
    const bool is_number = text.substr(begin, at - begin).find('.') != std::string::npos;
    if (is_word || !is_number || begin < copied) continue;
    result += text.substr(copied, begin - copied) + "#.##";
    copied = at;
  }
  return result + text.substr(copied);
}

GoldenCase RunGoldenCase(const GoldenCase& golden) {
  const WorkFolder workplace;
  std::set<std::string> given;
  for (const GoldenSection& section : golden.sections) {
    if (section.kind != "file") continue;
    workplace.Write(section.name, section.text);
    given.insert(section.name);
  }
  const Streams streams = golden.has_terminal ? Streams::kTerminal : Streams::kApart;
  const ProgramResult result = workplace.Run(
      {Joined(golden.commands), "", golden.TextOf("stdin"), golden.environment, streams});
  GoldenCase actual = golden;
  std::erase_if(actual.sections, [](const GoldenSection& section) {
    return section.kind != "file" && section.kind != "stdin";
  });
  const auto add = [&](std::string kind, std::string name, const std::string& text) {
    const std::string shown = Visible(golden.has_terminal ? WithoutTimes(text) : text);
    actual.sections.push_back({std::move(kind), std::move(name), shown});
  };
  if (!result.out.empty()) add("stdout", "", result.out);
  if (!result.err.empty()) add("stderr", "", result.err);
  if (result.status != 0) add("status", "", std::to_string(result.status) + "\n");
  for (const std::string& name : workplace.Files()) {
    if (given.contains(name)) continue;
    const bool is_text = !name.ends_with(".onnx");
    add("wrote", name, is_text ? *ReadWholeFile(workplace.PathOf(name)) : "");
  }
  return actual;
}

void CompareOrUpdate(const fs::path& path, const std::string& expected, const std::string& actual) {
  if (updates_golden && expected != actual) {
    MESSAGE("rewritten: " << path.filename().string());
    CHECK(WriteFiles({{path.string(), actual}}).ok());
  } else {
    CHECK(expected == actual);
  }
}

// The cases of testdata/cli, read once.
const Result<std::vector<NamedCase>>& Cases() {
  static const Result<std::vector<NamedCase>> cases = ReadCases(kProject / "testdata/cli");
  return cases;
}

void RunCase(const NamedCase& named) {
  const GoldenCase& golden = named.golden;
  if (!CanRun(golden.commands)) {
    MESSAGE("SKIPPED: ckexec was not built; see docs/dependencies.md");
    return;
  }
  if (!HasItsSolver(golden.commands, named.text)) {
    MESSAGE("SKIPPED: ckplan was built without HiGHS; see docs/dependencies.md");
    return;
  }
  if (golden.has_terminal && !HasTerminals()) {
    MESSAGE("SKIPPED: no pseudo-terminal can be opened here (is /dev/pts mounted?)");
    return;
  }
  const std::string actual = FormatGoldenCase(RunGoldenCase(golden));
  if (updates_golden && actual != named.text) {
    MESSAGE("rewritten: " << named.name);
    CHECK(RewriteCase(named, actual).ok());
  } else {
    CHECK(named.text == actual);
  }
}

constexpr std::string_view kCasePrefix = "command line: ";

// Runs the case of testdata/cli after which doctest's current test case is named.
void RunCurrentCase() {
  const std::string_view test_name = doctest::getContextOptions()->currentTest->m_name;
  const std::string_view name = test_name.substr(kCasePrefix.size());
  for (const NamedCase& named : *Cases()) {
    if (named.name == name) RunCase(named);
  }
}

// With sanitizers, whose runs take most of a second each, runs only the tests of refusals, and
// every fourth of the others.
bool IsLeftOut(const std::string& name, size_t index) {
  const bool is_refused = name.starts_with("error") || name.starts_with("regress");
  return kHasSanitizers && !is_refused && index % 4 != 0;
}

// Makes a doctest test case of each case, as the macro TEST_CASE does, so that -tc finds it by its
// name, -sf by its bundle, and a failure names its place.
void RegisterCases() {
  if (!Cases().ok()) return;
  static std::vector<std::string> names(Cases()->size());  // doctest keeps pointers to them.
  for (size_t i = 0; i < names.size(); ++i) {
    const NamedCase& named = (*Cases())[i];
    if (IsLeftOut(named.name, i)) continue;
    names[i] = std::string(kCasePrefix) + named.name;
    const doctest::detail::TestSuite no_suite{};
    doctest::detail::TestCase test(RunCurrentCase, named.bundle.c_str(),
                                   static_cast<unsigned>(named.line), no_suite);
    doctest::detail::regTest(test * names[i].c_str());
  }
}

TEST_CASE("cases: every bundle of testdata/cli can be read") {
  const std::string fault = Cases().ok() ? "" : Cases().error().message;
  CHECK(fault == "");
  CHECK((!Cases().ok() || Cases()->size() > 20));
}

// Returns the page with the current output of its commands.
std::string RunPage(const std::string& page) {
  std::string actual;
  size_t copied = 0;
  const WorkFolder workplace;
  for (const ConsoleBlock& block : FindConsoleBlocks(page)) {
    if (!CanRun(block.commands)) {
      MESSAGE("SKIPPED: a block of ckexec, which was not built; see docs/dependencies.md");
      continue;
    }
    actual += page.substr(copied, block.begin - copied);
    for (const std::string& command : block.commands) {
      const ProgramResult result = workplace.Run({command, "", "", {}, Streams::kTogether});
      actual += "$ " + command + "\n" + result.out;
    }
    copied = block.end;
  }
  return actual + page.substr(copied);
}

TEST_CASE("docs: every console block shows its commands' output") {
  std::vector<fs::path> pages = FilesEndingIn(kProject / "docs", ".md");
  pages.push_back(kProject / "README.md");
  size_t block_count = 0;
  for (const fs::path& path : pages) {
    CAPTURE(path.filename().string());
    const std::string page = *ReadWholeFile(path.string());
    block_count += FindConsoleBlocks(page).size();
    CompareOrUpdate(path, page, RunPage(page));
  }
  CHECK(block_count > 0);
}

// A picture that a command of ours draws: a comment with the command, then the image.
struct Picture {
  std::string command;
  std::string path;  // Relative to the page's folder.
};

std::vector<Picture> FindPictures(const std::string& page) {
  static const std::regex kPicture(R"(<!-- \$ (.*) -->\n!\[[^\]]*\]\(([^)]*)\))");
  std::vector<Picture> pictures;
  for (std::sregex_iterator at(page.begin(), page.end(), kPicture), end; at != end; ++at) {
    pictures.push_back({at->str(1), at->str(2)});
  }
  return pictures;
}

TEST_CASE("docs: every picture with a command is what the command draws") {
  std::vector<fs::path> pages = FilesEndingIn(kProject / "docs", ".md");
  pages.push_back(kProject / "README.md");
  size_t picture_count = 0;
  for (const fs::path& page : pages) {
    for (const Picture& picture : FindPictures(*ReadWholeFile(page.string()))) {
      CAPTURE(picture.path);
      ++picture_count;
      const fs::path path = page.parent_path() / picture.path;
      const Result<std::string> drawn = ReadWholeFile(path.string());
      const ProgramResult result = WorkFolder().Run({picture.command, "", "", {}});
      CHECK(result.status == 0);
      CompareOrUpdate(path, drawn.ok() ? *drawn : "", result.out);
    }
  }
  CHECK(picture_count > 0);
}

TEST_CASE("help: every command has a golden --help") {
  std::set<std::string> commands;
  REQUIRE(Cases().ok());
  for (const NamedCase& named : *Cases()) {
    commands.insert(named.golden.commands.begin(), named.golden.commands.end());
  }
  for (const Command& command : AllCommands()) {
    CAPTURE(command.name);
    CHECK(commands.contains("ckplan " + std::string(command.name) + " --help"));
  }
}

TEST_CASE("exit codes: the page of the plan format lists them as --help does") {
  const std::string page = *ReadWholeFile((kProject / "docs/plan-format.md").string());
  for (const ExitCodeMeaning& row : kExitCodeMeanings) {
    const std::string line =
        "| " + std::to_string(static_cast<int>(row.code)) + " | " + std::string(row.meaning);
    CAPTURE(line);
    CHECK(page.find(line) != std::string::npos);
  }
}

// Returns the exit status of the program when it is interrupted while it waits for the named pipe
// `pipe_name`. After the signal the pipe gets `text`, if there is any.
int StatusOfInterrupted(const char* program, const std::string& pipe_name, const std::string& text,
                        std::vector<std::string> arguments) {
  REQUIRE(mkfifo(pipe_name.c_str(), 0600) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string name = fs::path(program).filename().string();
    std::vector<char*> argv = {name.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(program, argv.data());
    _exit(127);
  }
  const int pipe_end = open(pipe_name.c_str(), O_WRONLY);  // Waits for the program to open it.
  REQUIRE(pipe_end >= 0);
  REQUIRE(kill(child, SIGINT) == 0);
  if (!text.empty()) {
    REQUIRE(write(pipe_end, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(pipe_end);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (text.empty()) close(pipe_end);
  return status;
}

constexpr const char* kSmallGraph =
    R"({"name": "one", "nodes": [{"id": 0, "name": "a", "op": "x", "bytes": 8, "time": 1}],
        "edges": []})";

TEST_CASE("interrupt: Ctrl-C ends with 130, and nothing is written") {
  const WorkFolder workplace;
  const std::string graph = workplace.PathOf("graph.json");
  const std::string out = workplace.PathOf("plan.json");
  const int status =
      StatusOfInterrupted(CKPLAN_BINARY, graph, kSmallGraph, {graph, "-q", "-o", out});
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(!fs::exists(out));
}

TEST_CASE("interrupt: ckplan diff of one model ends with 130, too") {
  const WorkFolder workplace;
  const std::string graph = workplace.PathOf("graph.json");
  const int status = StatusOfInterrupted(CKPLAN_BINARY, graph, kSmallGraph,
                                         {"diff", graph, "-a", "keep-all,chen-sqrt", "-q"});
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
}

TEST_CASE("interrupt: ckexec ends with 130, and nothing is written") {
  if (kExecutor == nullptr) {
    MESSAGE("SKIPPED: ckexec was not built; see docs/dependencies.md");
    return;
  }
  const WorkFolder workplace;
  const std::string plan = workplace.PathOf("plan.json");
  const std::string out = workplace.PathOf("report.json");
  const std::string model = workplace.PathOf("testdata/models/tiny_mlp.onnx");
  const int status = StatusOfInterrupted(kExecutor, plan, "",
                                         {"validate", model, "--plan", plan, "-q", "-o", out});
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(!fs::exists(out));
}

}  // namespace
}  // namespace ckplan

int main(int argc, char** argv) {
  ckplan::RegisterCases();
  doctest::Context context(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update-golden") ckplan::updates_golden = true;
  }
  return context.run();
}
