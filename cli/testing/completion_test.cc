// Tests the outputs made from the tables of --help: completions of three shells, and manual pages.
// Each must have every command and every flag. bash really completes with its script, and man must
// read the pages without a warning.
#include "cli/common/completion.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#ifdef CKEXEC_BINARY
#include "cli/ckexec/commands.h"
#endif
#include "cli/ckplan/commands.h"
#include "cli/testing/work_folder.h"

namespace ckplan {
namespace {

ProgramResult RunIn(const WorkFolder& workplace, const std::string& command) {
  return workplace.Run({command, "", "", {}, Streams::kApart});
}

bool Has(const WorkFolder& workplace, const std::string& program) {
  if (RunIn(workplace, "command -v " + program).status == 0) return true;
  MESSAGE("SKIPPED: there is no " << program << " here");
  return false;
}

std::vector<ProgramDescription> Programs() {
  std::vector<ProgramDescription> programs = {DescribeProgram()};
#ifdef CKEXEC_BINARY
  programs.push_back(DescribeExec());
#endif
  return programs;
}

// Returns the flag as a script writes it: fish writes "-l algo" and "-s a".
std::string FlagIn(const std::string& shell, const std::string& flag) {
  if (shell != "fish") return flag;
  return flag.starts_with("--") ? "-l " + flag.substr(2) : "-s " + flag.substr(1);
}

void CheckScript(const WorkFolder& workplace, const ProgramDescription& program,
                 const std::string& shell) {
  CAPTURE(program.name);
  CAPTURE(shell);
  const ProgramResult printed = RunIn(workplace, program.name + " completion " + shell);
  CHECK(printed.status == 0);
  for (const CommandDescription& command : program.commands) {
    CAPTURE(command.name);
    CHECK(printed.out.find(WordOf(command)) != std::string::npos);
    for (const OptionDescription& option : command.Shown()) {
      for (const std::string& flag : option.EachFlag()) {
        CAPTURE(flag);
        CHECK(printed.out.find(FlagIn(shell, flag)) != std::string::npos);
      }
    }
  }
}

TEST_CASE("completion: the script of every shell has every command and every flag") {
  const WorkFolder workplace;
  REQUIRE(DescribeProgram().commands.size() == AllCommands().size());
  for (const ProgramDescription& program : Programs()) {
    for (const Shell& shell : AllShells()) CheckScript(workplace, program, std::string(shell.name));
  }
}

TEST_CASE("completion: installed shells read their scripts") {
  const WorkFolder workplace;
  for (const Shell& shell : AllShells()) {
    const std::string name(shell.name);
    if (!Has(workplace, name)) continue;
    CAPTURE(name);
    for (const ProgramDescription& program : Programs()) {
      CAPTURE(program.name);
      const ProgramResult read =
          RunIn(workplace,
                fmt::format("{1} completion {0} >script && {0} -n script", name, program.name));
      CHECK(read.err == "");
      CHECK(read.status == 0);
    }
  }
}

// Returns what bash offers for each line, with the cursor at its end: a set of replies for each
// line.
std::vector<std::set<std::string>> OfferedByBash(const WorkFolder& workplace,
                                                 const std::string& program,
                                                 const std::vector<std::string>& lines) {
  std::string script = fmt::format(
      "source <({0} completion bash) || exit 1\n"
      "offer() {{\n"
      "  COMP_LINE=$1 COMP_POINT=${{#1}} COMPREPLY=()\n"
      "  _{0}_complete\n"
      "  echo \"${{COMPREPLY[*]}}\"\n"
      "}}\n",
      program);
  for (const std::string& line : lines) script += "offer '" + line + "'\n";
  workplace.Write("offer.sh", script);
  const ProgramResult result = RunIn(workplace, "bash offer.sh");
  CHECK(result.err == "");
  std::vector<std::set<std::string>> offered;
  std::istringstream replies(result.out);
  for (std::string reply; std::getline(replies, reply);) {
    std::istringstream words(reply);
    std::set<std::string> all;
    for (std::string word; words >> word;) all.insert(word);
    offered.push_back(std::move(all));
  }
  return offered;
}

TEST_CASE("completion: bash completes commands, flags, values and files") {
  const WorkFolder workplace;
  if (!Has(workplace, "bash")) return;
  workplace.Write("figure.json", "");
  const struct {
    std::string line;
    std::set<std::string> offered;
  } kRows[] = {
      {"ckplan comp", {"compare", "completion"}},
      {"ckplan help ins", {"inspect"}},
      {"ckplan fig", {"figure.json"}},
      {"ckplan plan figure.json --alg", {"--algo"}},
      {"ckplan figure.json --budget-t", {"--budget-total"}},
      {"ckplan plan figure.json -a chen-s", {"chen-search", "chen-sqrt"}},
      {"ckplan plan figure.json --effort ", {"normal", "quick", "thorough"}},
      // In "--effort=th" bash replaces the text after "=", and in "flops:h1" the text after ":".
      {"ckplan plan figure.json --effort=th", {"thorough"}},
      {"ckplan plan figure.json --cost flops:h100", {"h100-80g", "h100pcie-80g"}},
      {"ckplan plan figure.json --cost file:fig", {"figure.json"}},
      {"ckplan compare figure.json --algo chen-sqrt,exa", {"chen-sqrt,exact-dp"}},
      {"ckplan plan figure.json --emit perf", {"perfetto="}},
      {"ckplan plan figure.json --emit dot=fig", {"figure.json"}},
      {"ckplan diff a b --emit ", {"curve=", "html="}},
      {"ckplan check fig", {"figure.json"}},
      {"ckplan fit figure.json --memory rtx4", {"rtx4060-8g", "rtx4090-24g"}},
      {"ckplan schema dif", {"diff"}},
      {"ckplan completion z", {"zsh"}},
      {"ckplan man exp", {"explain"}},
      {"ckplan plan figure.json --budget ", {}},
      {"ckplan plan figure.json --no-such", {}},
  };
  std::vector<std::string> lines;
  for (const auto& row : kRows) lines.push_back(row.line);
  const auto offered = OfferedByBash(workplace, "ckplan", lines);
  REQUIRE(offered.size() == lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(lines[i]);
    CHECK(offered[i] == kRows[i].offered);
  }
}

#ifdef CKEXEC_BINARY
TEST_CASE("completion: bash completes ckexec, which has no default command") {
  const WorkFolder workplace;
  if (!Has(workplace, "bash")) return;
  workplace.Write("figure.json", "");
  const auto offered =
      OfferedByBash(workplace, "ckexec",
                    {"ckexec pro", "ckexec fig", "ckexec fig x", "ckexec run fig",
                     "ckexec run figure.json --backend c", "ckexec --v", "ckexec man val"});
  const std::vector<std::set<std::string>> expected = {
      {"profile"}, {}, {}, {"figure.json"}, {"cpu", "cuda"}, {"--version"}, {"validate"}};
  CHECK(offered == expected);
}
#endif

TEST_CASE("completion: bash offers the flags of a command, no more and no less") {
  const WorkFolder workplace;
  if (!Has(workplace, "bash")) return;
  for (const ProgramDescription& program : Programs()) {
    std::vector<std::string> lines;
    for (const CommandDescription& command : program.commands) {
      lines.push_back(command.name + " x -");
    }
    const auto offered = OfferedByBash(workplace, program.name, lines);
    REQUIRE(offered.size() == lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      CAPTURE(lines[i]);
      std::set<std::string> flags;
      for (const OptionDescription& option : program.commands[i].Shown()) {
        for (const std::string& flag : option.EachFlag()) flags.insert(flag);
      }
      CHECK(offered[i] == flags);
    }
  }
}

// Returns the text as roff writes it.
std::string InRoff(const std::string& flag) {
  std::string text;
  for (const char c : flag) text += c == '-' ? std::string("\\-") : std::string(1, c);
  return "\\fB" + text + "\\fR";
}

void CheckPages(const WorkFolder& workplace, const ProgramDescription& program) {
  const std::string whole = RunIn(workplace, program.name + " man").out;
  for (const CommandDescription& command : program.commands) {
    CAPTURE(command.name);
    const std::string word = WordOf(command);
    CHECK(whole.find(InRoff(program.name + "-" + word) + "(1)") != std::string::npos);
    const ProgramResult page = RunIn(workplace, program.name + " man " + word);
    CHECK(page.status == 0);
    for (const OptionDescription& option : command.Shown()) {
      for (const std::string& flag : option.EachFlag()) {
        CAPTURE(flag);
        CHECK(page.out.find(InRoff(flag)) != std::string::npos);
      }
    }
  }
}

TEST_CASE("man: the pages have every command, every flag and its help") {
  const WorkFolder workplace;
  for (const ProgramDescription& program : Programs()) CheckPages(workplace, program);
}

TEST_CASE("man: man reads the pages without a warning") {
  const WorkFolder workplace;
  const bool has_man = Has(workplace, "man");
  const bool has_mandoc = Has(workplace, "mandoc");
  std::vector<std::string> pages;
  for (const ProgramDescription& program : Programs()) {
    pages.push_back(program.name + " man");
    for (const CommandDescription& command : program.commands) {
      pages.push_back(program.name + " man " + WordOf(command));
    }
  }
  for (const std::string& page : pages) {
    CAPTURE(page);
    REQUIRE(RunIn(workplace, page + " >page.1").status == 0);
    if (has_man) {
      const ProgramResult read = RunIn(workplace,
                                       "LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E "
                                       "UTF-8 -l -Tutf8 -Z page.1 >out");
      CHECK(read.err == "");
      CHECK(read.status == 0);
    }
    if (has_mandoc) CHECK(RunIn(workplace, "mandoc -Tlint -W error page.1").out == "");
  }
}

}  // namespace
}  // namespace ckplan
