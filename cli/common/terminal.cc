#include "cli/common/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "cli/common/message.h"
#include "cli/common/request_flags.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr int kNarrowest = 40;
constexpr int kWidest = 200;
constexpr size_t kMaxErrorBytes = 1900;  // Under 2,000 with "ckplan: " and the dots.

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool WantsColour(bool is_tty, ColourChoice choice) {
  if (choice != ColourChoice::kAuto) return choice == ColourChoice::kAlways;
  if (!Environment("NO_COLOR").empty()) return false;
  const std::string_view force = Environment("FORCE_COLOR");
  if (!force.empty() && force != "0") return true;
  return is_tty;
}

void WriteToStderr(std::string_view text) {
  std::fflush(stdout);  // Keeps both streams in order if they go to one place.
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Shortens the text at a boundary between UTF-8 characters.
std::string ShortenText(std::string text, size_t longest) {
  if (text.size() <= longest) return text;
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0) == 0x80) --longest;
  text.resize(longest);
  return text + "...";
}

int WidthOf(int file_descriptor) {
  const std::string_view columns = Environment("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  winsize size{};
  if (width <= 0 && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width > 0 ? std::clamp(width, kNarrowest, kWidest) : Terminal().width;
}

constexpr std::string_view kPlain = "\033[0m";

std::string_view CodeOf(TextStyle style) {
  switch (style) {
    case TextStyle::kBold:
      return "\033[1m";
    case TextStyle::kDim:
      return "\033[2m";
    case TextStyle::kWarning:
      return "\033[33m";
  }
  return kPlain;
}

// Returns the length of one of our own escape sequences if `text` begins with one, and 0 otherwise.
size_t StyleLength(std::string_view text) {
  for (const std::string_view code :
       {kPlain, CodeOf(TextStyle::kBold), CodeOf(TextStyle::kDim), CodeOf(TextStyle::kWarning)}) {
    if (text.starts_with(code)) return code.size();
  }
  return 0;
}

// Makes text of many lines printable. Line feeds stay, and so do styles on terminals with colour.
std::string PrintableText(std::string_view text, bool has_colour) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find_first_of("\n\033");
    out += Printable(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end);
    const size_t kept = text.front() == '\n' ? 1 : has_colour ? StyleLength(text) : 0;
    out += kept > 0 ? std::string(text.substr(0, kept)) : Printable(text.substr(0, 1));
    text.remove_prefix(std::max(kept, size_t{1}));
  }
  return out;
}

}  // namespace

Terminal DetectTerminal(int file_descriptor, ColourChoice choice) {
  Terminal terminal;
  terminal.is_tty = isatty(file_descriptor) != 0 && Environment("TERM") != "dumb";
  terminal.has_colour = WantsColour(terminal.is_tty, choice);
  if (terminal.is_tty) terminal.width = WidthOf(file_descriptor);
  return terminal;
}

size_t Terminal::table_width() const {
  return is_tty ? static_cast<size_t>(width) : std::numeric_limits<size_t>::max();
}

std::string Styled(std::string_view text, TextStyle style, const Terminal& terminal) {
  if (!terminal.has_colour) return std::string(text);
  return fmt::format("{}{}{}", CodeOf(style), text, kPlain);
}

Result<Done> Screen::Print(std::string_view raw) const {
  const std::string text = PrintableText(raw, out.has_colour);
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return Done{};
  return MakeError(ErrorCode::kIo,
                   fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

Result<Done> Screen::PrintHelp(std::string_view text) const {
  return Print(Folded(text, out.table_width()));
}

void Screen::Note(std::string_view line) const {
  if (is_quiet) return;
  const bool is_json = CurrentMessageForm() == MessageForm::kJson;
  WriteToStderr(is_json ? MessageJson("note", line) : PrintableMessage(line) + "\n");
}

void Screen::Warn(std::string_view line) const {
  if (is_quiet) return;
  if (CurrentMessageForm() == MessageForm::kJson) {
    WriteToStderr(MessageJson("warning", line));
    return;
  }
  WriteToStderr(fmt::format("ckplan: {}: {}\n", Styled("warning", TextStyle::kWarning, err),
                            PrintableMessage(line)));
}

Screen DetectScreen(std::string_view color, bool is_quiet, bool has_no_progress) {
  const ColourChoice choice = color == "always"  ? ColourChoice::kAlways
                              : color == "never" ? ColourChoice::kNever
                                                 : ColourChoice::kAuto;
  Screen screen;
  screen.out = DetectTerminal(STDOUT_FILENO, choice);
  screen.err = DetectTerminal(STDERR_FILENO, choice);
  screen.is_quiet = is_quiet;
  const bool is_text = CurrentMessageForm() == MessageForm::kText;
  screen.shows_progress = screen.err.is_tty && is_text && !is_quiet && !has_no_progress;
  return screen;
}

void PrintError(const Error& error, std::string_view program, ExitCode code) {
  if (CurrentMessageForm() == MessageForm::kJson) {
    WriteToStderr(ErrorJson(error, code));
    return;
  }
  std::string text = PrintableMessage(MessageOf(error));
  for (const std::string& note : error.notes) text += "\n  " + PrintableMessage(note);
  WriteToStderr(fmt::format("{}: {}\n", program, ShortenText(std::move(text), kMaxErrorBytes)));
}

void Progress::Stage(std::string_view text) {
  if (!is_shown_) return;
  constexpr size_t kLongest = 70;  // A line that wraps could not be erased.
  WriteToStderr(fmt::format("\r{}...\033[K", Printable(text, kLongest)));
  has_line_ = true;
}

void Progress::Clear() {
  if (!has_line_) return;
  WriteToStderr("\r\033[K");
  has_line_ = false;
}

}  // namespace ckplan
