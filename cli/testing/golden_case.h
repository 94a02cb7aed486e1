// Command-line tests are cases in the bundles of testdata/cli (lib/testing/bundle.h). A case:
//
//   ======== check_json                  its name; error3_... if the program must exit with 3
//   # What it shows.
//   $ ckplan check plan.json             the command, for /bin/sh; there may be several
//   terminal                             optional: on a pseudo-terminal
//   env NO_COLOR=1                       optional, any number of times
//   === file plan.json                   optional: a file that exists beforehand
//   {...}
//   === stdin                            optional
//   === stdout                           expected output; absent: none
//   === stderr
//   === status                           absent: 0
//   === wrote out.json                   a file that the command writes
//
// In texts, ESC is written as ␛ and a carriage return as ␍; times on a terminal as #.## s.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

struct GoldenSection {
  std::string kind;  // "stdout", "file"
  std::string name;  // The file's name, for sections that have one.
  std::string text;
};

struct GoldenCase {
  std::vector<std::string> head;  // The lines before the first section.
  std::vector<std::string> commands;
  std::vector<std::string> environment;
  bool has_terminal = false;
  std::vector<GoldenSection> sections;

  std::string TextOf(std::string_view kind) const;
};

// kInvalidInput: the head has an unknown line, or there is an unknown section.
Result<GoldenCase> ParseGoldenCase(const std::string& text);
std::string FormatGoldenCase(const GoldenCase& golden);

struct NamedCase {
  std::string name;
  std::filesystem::path bundle;  // The file that contains the case,
  int line = 0;                  // and the line of its heading.
  std::string text;
  GoldenCase golden;
};

// Reads the cases of all files FOLDER/*.test, sorted by file name. kInvalidInput: a bundle or a
// case is malformed, or two cases have the same name.
Result<std::vector<NamedCase>> ReadCases(const std::filesystem::path& folder);
// Replaces the text of one case in its bundle.
Result<Done> RewriteCase(const NamedCase& named, const std::string& text);

// A block of a Markdown page that begins with "```console". Its commands are the lines that begin
// with "$ ", each followed by its output.
struct ConsoleBlock {
  size_t begin = 0;  // Offset in the page of the first byte after the opening line.
  size_t end = 0;    // Offset of the first byte of the closing line.
  std::vector<std::string> commands;
};
std::vector<ConsoleBlock> FindConsoleBlocks(const std::string& page);

// Returns text with control characters made visible.
std::string Visible(std::string_view text);

}  // namespace ckplan
