#include "cli/testing/golden_file.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

namespace ckplan {
namespace {

constexpr std::string_view kSectionMark = "=== ";
constexpr std::string_view kCommandMark = "$ ";
constexpr std::array<std::string_view, 6> kSectionKinds = {"file",   "stdin",  "stdout",
                                                           "stderr", "status", "wrote"};

Result<Done> ReadHeadLine(const std::string& line, GoldenFile* file) {
  constexpr std::string_view kEnvironmentMark = "env ";
  file->head.push_back(line);
  if (line.empty() || line.starts_with('#')) return Done{};
  if (line == "terminal") {
    file->has_terminal = true;
  } else if (line.starts_with(kCommandMark)) {
    file->commands.push_back(line.substr(kCommandMark.size()));
  } else if (line.starts_with(kEnvironmentMark)) {
    file->environment.push_back(line.substr(kEnvironmentMark.size()));
  } else {
    return MakeError(ErrorCode::kInvalidInput, "no line of a test's head: " + line);
  }
  return Done{};
}

Result<GoldenSection> ReadSectionLine(const std::string& line) {
  std::istringstream words(line.substr(kSectionMark.size()));
  GoldenSection section;
  words >> section.kind >> section.name;
  for (const std::string_view kind : kSectionKinds) {
    if (section.kind == kind) return section;
  }
  return MakeError(ErrorCode::kInvalidInput, "no section of a test: " + line);
}

}  // namespace

std::string GoldenFile::TextOf(std::string_view kind) const {
  for (const GoldenSection& section : sections) {
    if (section.kind == kind) return section.text;
  }
  return "";
}

Result<GoldenFile> ParseGoldenFile(const std::string& text) {
  GoldenFile file;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kSectionMark)) {
      CKPLAN_ASSIGN_OR_RETURN(GoldenSection section, ReadSectionLine(line));
      file.sections.push_back(std::move(section));
    } else if (file.sections.empty()) {
      CKPLAN_RETURN_IF_ERROR(ReadHeadLine(line, &file));
    } else {
      file.sections.back().text += line + "\n";
    }
  }
  if (file.commands.empty()) {
    return MakeError(ErrorCode::kInvalidInput, "the test has no command (a line with \"$ \")");
  }
  return file;
}

std::string FormatGoldenFile(const GoldenFile& file) {
  std::string text;
  for (const std::string& line : file.head) text += line + "\n";
  for (const GoldenSection& section : file.sections) {
    text += fmt::format("{}{}{}{}\n", kSectionMark, section.kind, section.name.empty() ? "" : " ",
                        section.name);
    text += section.text;
    if (!section.text.empty() && section.text.back() != '\n') text += '\n';
  }
  return text;
}

std::vector<ConsoleBlock> FindConsoleBlocks(const std::string& page) {
  constexpr std::string_view kOpening = "```console\n";
  std::vector<ConsoleBlock> blocks;
  for (size_t at = page.find(kOpening); at != std::string::npos; at = page.find(kOpening, at)) {
    ConsoleBlock block;
    block.begin = at + kOpening.size();
    block.end = page.find("```", block.begin);
    if (block.end == std::string::npos) break;
    std::istringstream lines(page.substr(block.begin, block.end - block.begin));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(kCommandMark))
        block.commands.push_back(line.substr(kCommandMark.size()));
    }
    at = block.end;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::string Visible(std::string_view text) {
  std::string visible;
  for (const char c : text) {
    if (c == '\033') {
      visible += "␛";
    } else if (c == '\r') {
      visible += "␍";
    } else {
      visible += c;
    }
  }
  return visible;
}

}  // namespace ckplan
