#include "cli/common/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/common/request_flags.h"

namespace ckplan {
namespace {

constexpr int kNarrowest = 60;
constexpr int kWidest = 200;
constexpr size_t kMaxErrorBytes = 1900;  // With "ckplan: " and the dots: under 2,000.

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
  std::fflush(stdout);  // So that both streams appear in order where they meet.
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Cuts at a border of UTF-8 characters.
std::string Shortened(std::string text, size_t longest) {
  if (text.size() <= longest) return text;
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0) == 0x80) --longest;
  text.resize(longest);
  return text + "...";
}

}  // namespace

Terminal DetectTerminal(int file_descriptor, ColourChoice choice) {
  Terminal terminal;
  terminal.is_tty = isatty(file_descriptor) != 0 && Environment("TERM") != "dumb";
  terminal.has_colour = WantsColour(terminal.is_tty, choice);
  winsize size{};
  if (terminal.is_tty && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = std::clamp<int>(size.ws_col, kNarrowest, kWidest);
  }
  return terminal;
}

std::string Styled(std::string_view text, TextStyle style, const Terminal& terminal) {
  if (!terminal.has_colour) return std::string(text);
  const char* const code = style == TextStyle::kBold ? "1" : style == TextStyle::kDim ? "2" : "33";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

Result<Done> Screen::Print(std::string_view text) const {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return Done{};
  return MakeError(ErrorCode::kIo,
                   fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void Screen::Note(std::string_view line) const {
  if (!is_quiet) WriteToStderr(fmt::format("{}\n", line));
}

void Screen::Warn(std::string_view line) const {
  if (is_quiet) return;
  WriteToStderr(fmt::format("ckplan: {}: {}\n", Styled("warning", TextStyle::kWarning, err), line));
}

Screen DetectScreen(std::string_view color, bool is_quiet, bool has_no_progress) {
  const ColourChoice choice = color == "always"  ? ColourChoice::kAlways
                              : color == "never" ? ColourChoice::kNever
                                                 : ColourChoice::kAuto;
  Screen screen;
  screen.out = DetectTerminal(STDOUT_FILENO, choice);
  screen.err = DetectTerminal(STDERR_FILENO, choice);
  screen.is_quiet = is_quiet;
  screen.shows_progress = screen.err.is_tty && !is_quiet && !has_no_progress;
  return screen;
}

void PrintError(const Error& error, std::string_view program) {
  std::string text = MessageOf(error);
  for (const std::string& note : error.notes) text += "\n  " + note;
  WriteToStderr(fmt::format("{}: {}\n", program, Shortened(std::move(text), kMaxErrorBytes)));
}

void Progress::Stage(std::string_view text) {
  if (!is_shown_) return;
  WriteToStderr(fmt::format("\r{}...\033[K", text));
  has_line_ = true;
}

void Progress::Clear() {
  if (!has_line_) return;
  WriteToStderr("\r\033[K");
  has_line_ = false;
}

}  // namespace ckplan
