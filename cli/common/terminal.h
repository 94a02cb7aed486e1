// Describes what the two output streams can display. No other code writes to them.
//
// Written text is printable (lib/base/text.h) whatever names it contains. Messages are short
// and have one line; other text may contain only line feeds and our own colours.
//
// Data goes to standard output, everything else to standard error. Colour, bars and progress appear
// only on terminals. NO_COLOR (non-empty), FORCE_COLOR and TERM=dumb are honoured; `--color always`
// and `--color never` override all of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

enum class ColourChoice { kAuto, kAlways, kNever };

struct Terminal {
  bool is_tty = false;      // A terminal that understands escape sequences.
  bool has_colour = false;  // May be true without is_tty.
  int width = 100;          // In columns. COLUMNS in the environment overrides the terminal's.

  // Returns how wide tables may be. If the output is not a terminal, tables have the width that
  // they need.
  size_t table_width() const;
};

Terminal DetectTerminal(int file_descriptor, ColourChoice choice);

enum class TextStyle { kBold, kDim, kWarning };
// Returns `text` in that style, or unchanged if the terminal has no colour.
std::string Styled(std::string_view text, TextStyle style, const Terminal& terminal);

// Both streams, as one run of a program uses them.
struct Screen {
  Terminal out;
  Terminal err;
  bool is_quiet = false;    // On success, prints only data that was asked for.
  bool is_verbose = false;  // Prints everything, not only what matters most.
  bool shows_progress = false;

  // kIo: some of the text could not be written.
  Result<Done> Print(std::string_view text) const;
  // Prints text folded to the width of the terminal.
  Result<Done> PrintHelp(std::string_view text) const;
  // Prints the message, which must be one line, on standard error in the form of messages, which
  // may be JSON (cli/common/message.h). Prints nothing if `is_quiet`.
  void Note(std::string_view line) const;
  void Warn(std::string_view line) const;
};

// Returns the screen of this process. `color` is always, never or auto. Progress is shown on a
// terminal, unless `has_no_progress` is set.
Screen DetectScreen(std::string_view color, bool is_quiet, bool has_no_progress);

// Prints `ckplan: message` and as many of the notes as fit a screen, or all of it as JSON
// (cli/common/message.h). `code` is the exit code that the error leads to.
void PrintError(const Error& error, std::string_view program, ExitCode code);
inline void PrintError(const Error& error, std::string_view program) {
  PrintError(error, program, ExitCodeOf(error.code));
}

// A line on standard error that names the current stage and is erased at the end. Does nothing if
// standard error is not a terminal.
class Progress {
 public:
  explicit Progress(bool is_shown) : is_shown_(is_shown) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }

  void Stage(std::string_view text);
  void Clear();

 private:
  bool is_shown_;
  bool has_line_ = false;
};

}  // namespace ckplan
