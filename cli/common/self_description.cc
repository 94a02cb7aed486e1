#include "cli/common/self_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "cli/common/completion.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

std::vector<std::string_view> ShellNames() {
  std::vector<std::string_view> names;
  for (const Shell& shell : AllShells()) names.push_back(shell.name);
  return names;
}

}  // namespace

void AddShellName(CommandLine& line, std::string* shell) {
  line.Positional("SHELL", fmt::format("{}", fmt::join(ShellNames(), ", ")), shell);
}

Result<ExitCode> PrintCompletion(const ProgramDescription& program, const std::string& shell,
                                 const Screen& screen) {
  for (const Shell& known : AllShells()) {
    if (known.name != shell) continue;
    CKPLAN_RETURN_IF_ERROR(screen.Print(known.script(program)));
    return ExitCode::kOk;
  }
  return MakeError(ErrorCode::kUsage,
                   "no completion for " + DescribeUnknownName(shell, ShellNames()));
}

void AddCommandName(CommandLine& line, std::string* command) {
  line.OptionalPositional("COMMAND", "the command to describe (default: the program)", command);
}

Result<ExitCode> PrintManPage(const ProgramDescription& program, const std::string& command,
                              const Screen& screen) {
  if (command.empty()) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(ProgramManPage(program)));
    return ExitCode::kOk;
  }
  std::vector<std::string> names;
  for (const CommandDescription& known : program.commands) {
    names.push_back(WordOf(known));
    if (names.back() != command) continue;
    CKPLAN_RETURN_IF_ERROR(screen.Print(CommandManPage(program, known)));
    return ExitCode::kOk;
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return MakeError(ErrorCode::kUsage, "there is no command " + DescribeUnknownName(command, views));
}

namespace {

// Escapes text so that roff takes no line of it for a request. A hyphen stays searchable and can be
// copied, and a full stop or quote at the beginning of a line stays a character.
std::string Roff(std::string_view text) {
  std::string escaped;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) escaped += "\\&";
    begins_line = c == '\n';
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Returns the name of a command's page: "ckplan-plan".
std::string PageName(const CommandDescription& command) {
  std::string name = command.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string Head(const ProgramDescription& program, const std::string& page,
                 std::string_view summary) {
  return fmt::format(
      ".TH \"{}\" \"1\" \"\" \"{} {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "{} \\- {}\n",
      Upper(Roff(page)), program.name, program.version, Roff(page), Roff(summary));
}

// Removes the full stop of a summary, because the line with a page's name has none.
std::string RemoveFullStop(std::string_view sentence) {
  if (sentence.ends_with('.')) sentence.remove_suffix(1);
  return std::string(sentence);
}

std::string Example(std::string_view example) {
  return fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", Roff(example));
}

std::string ExitCodes(const ProgramDescription& program) {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitCodeMeaning& row : program.exit_codes) {
    text += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(row.code), Roff(row.meaning));
  }
  return text;
}

// Returns an option's flags in roff: "\fB\-a\fR, \fB\-\-algo\fR \fINAME\fR"
std::string OptionHead(const OptionDescription& option) {
  std::string text;
  for (const std::string& flag : option.EachFlag()) {
    text += fmt::format("{}\\fB{}\\fR", text.empty() ? "" : ", ", Roff(flag));
  }
  if (!option.form.empty()) text += fmt::format(" \\fI{}\\fR", Roff(option.form));
  return text;
}

}  // namespace

std::string ProgramManPage(const ProgramDescription& program) {
  const std::string& name = program.name;
  std::string text = Head(program, name, program.summary);
  text += fmt::format(
      ".SH SYNOPSIS\n"
      "\\fB{}\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n",
      name);
  if (!program.default_command.empty()) {
    text += fmt::format(".br\n\\fB{}\\fR \\fIMODEL\\fR [\\fIoptions\\fR]\n", name);
  }
  text += fmt::format(".SH DESCRIPTION\n{}\n", Roff(program.purpose));
  if (!program.default_command.empty()) {
    text += fmt::format(".PP\nWithout a command, {0} runs \\fB{0} {1}\\fR.\n", name,
                        program.default_command);
  }
  text += ".SH COMMANDS\n";
  for (const CommandDescription& command : program.commands) {
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", Roff(PageName(command)), Roff(command.summary));
  }
  text +=
      ".SH OPTIONS\n"
      ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow the help and exit\n"
      ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nshow the version and exit\n";
  return text + Example(program.example) + ExitCodes(program);
}

std::string CommandManPage(const ProgramDescription& program, const CommandDescription& command) {
  std::string text = Head(program, PageName(command), RemoveFullStop(command.summary));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR{}\n", Roff(command.name),
                      Roff(std::string_view(command.usage).substr(command.name.size())));
  text += fmt::format(".SH DESCRIPTION\n{}\n", Roff(command.summary));
  for (const PositionalDescription& positional : command.positionals) {
    text += fmt::format(".TP\n\\fI{}\\fR{}\n{}\n", Roff(positional.name),
                        positional.may_repeat ? "..." : "", Roff(positional.help));
  }
  text += ".SH OPTIONS\n";
  for (const OptionDescription& option : command.Shown()) {
    text += fmt::format(".TP\n{}\n{}\n", OptionHead(option), Roff(option.help));
  }
  text += Example(command.example) + ExitCodes(program);
  return text + fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", Roff(program.name));
}

}  // namespace ckplan
