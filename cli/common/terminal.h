// What the two output streams can display, and the only code that writes to them.
//
// What is written is printable (lib/base/printable.h) whatever names are in it: messages are one
// line and short, and of other text only line feeds and our own colours are let through.
//
// Data goes to standard output, everything else to standard error. Colour, bars and progress appear
// on terminals alone. NO_COLOR (non-empty), FORCE_COLOR and TERM=dumb are honoured; `--color
// always` and `--color never` override all of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

enum class ColourChoice { kAuto, kAlways, kNever };

struct Terminal {
  bool is_tty = false;      // A terminal that understands escape sequences.
  bool has_colour = false;  // May be true without is_tty.
  int width = 100;          // Columns. COLUMNS in the environment goes before the terminal's own.

  // How wide tables may be. Where nobody looks, they have the width they need.
  size_t table_width() const;
};

Terminal DetectTerminal(int file_descriptor, ColourChoice choice);

enum class TextStyle { kBold, kDim, kWarning };
// `text` in that style; unchanged if the terminal has no colour.
std::string Styled(std::string_view text, TextStyle style, const Terminal& terminal);

// Both streams, as one run of a program uses them.
struct Screen {
  Terminal out;
  Terminal err;
  bool is_quiet = false;    // On success, prints only data that was asked for.
  bool is_verbose = false;  // Prints everything, not only what matters most.
  bool shows_progress = false;

  // kIo: not all of the text could be written.
  Result<Done> Print(std::string_view text) const;
  // Folded to the width of the terminal.
  Result<Done> PrintHelp(std::string_view text) const;
  // Prints the message, which is one line, on standard error, unless quiet.
  void Note(std::string_view line) const;
  void Warn(std::string_view line) const;
};

// The screen of this process. `color` is always, never or auto. Progress is shown on a terminal,
// unless `has_no_progress`.
Screen DetectScreen(std::string_view color, bool is_quiet, bool has_no_progress);

// Prints `ckplan: message` and as many of the notes as fit a screen.
void PrintError(const Error& error, std::string_view program);

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
