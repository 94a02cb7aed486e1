#include "cli/testing/golden_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "cli/common/files.h"
#include "lib/testing/bundle.h"

namespace ckplan {
namespace {

constexpr std::string_view kSectionMark = "=== ";
constexpr std::string_view kCommandMark = "$ ";
constexpr std::array<std::string_view, 6> kSectionKinds = {"file",   "stdin",  "stdout",
                                                           "stderr", "status", "wrote"};

Result<Done> ReadHeadLine(const std::string& line, GoldenCase* golden) {
  constexpr std::string_view kEnvironmentMark = "env ";
  golden->head.push_back(line);
  if (line.empty() || line.starts_with('#')) return Done{};
  if (line == "terminal") {
    golden->has_terminal = true;
  } else if (line.starts_with(kCommandMark)) {
    golden->commands.push_back(line.substr(kCommandMark.size()));
  } else if (line.starts_with(kEnvironmentMark)) {
    golden->environment.push_back(line.substr(kEnvironmentMark.size()));
  } else {
    return MakeError(ErrorCode::kInvalidInput, "unknown line in a test's head: " + line);
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
  return MakeError(ErrorCode::kInvalidInput, "unknown section in a test: " + line);
}

// Prefixes the message with the bundle, or the case, that it is about.
Error WithLocation(const std::string& where, const Error& error) {
  return MakeError(error.code, where + ": " + error.message);
}

Result<Bundle> ReadBundle(const std::filesystem::path& path) {
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path.string()));
  Result<Bundle> bundle = ParseBundle(text);
  if (!bundle.ok()) return WithLocation(path.filename().string(), bundle.error());
  return bundle;
}

std::vector<std::filesystem::path> BundlesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".test") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string GoldenCase::TextOf(std::string_view kind) const {
  for (const GoldenSection& section : sections) {
    if (section.kind == kind) return section.text;
  }
  return "";
}

Result<GoldenCase> ParseGoldenCase(const std::string& text) {
  GoldenCase golden;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kSectionMark)) {
      CKPLAN_ASSIGN_OR_RETURN(GoldenSection section, ReadSectionLine(line));
      golden.sections.push_back(std::move(section));
    } else if (golden.sections.empty()) {
      CKPLAN_RETURN_IF_ERROR(ReadHeadLine(line, &golden));
    } else {
      golden.sections.back().text += line + "\n";
    }
  }
  if (golden.commands.empty()) {
    return MakeError(ErrorCode::kInvalidInput, "the test has no command (a line with \"$ \")");
  }
  return golden;
}

std::string FormatGoldenCase(const GoldenCase& golden) {
  std::string text;
  for (const std::string& line : golden.head) text += line + "\n";
  for (const GoldenSection& section : golden.sections) {
    text += fmt::format("{}{}{}{}\n", kSectionMark, section.kind, section.name.empty() ? "" : " ",
                        section.name);
    text += section.text;
    if (!section.text.empty() && section.text.back() != '\n') text += '\n';
  }
  return text;
}

Result<std::vector<NamedCase>> ReadCases(const std::filesystem::path& folder) {
  std::vector<NamedCase> cases;
  std::map<std::string, std::string> bundle_of;
  for (const std::filesystem::path& path : BundlesIn(folder)) {
    const std::string file = path.filename().string();
    CKPLAN_ASSIGN_OR_RETURN(Bundle bundle, ReadBundle(path));
    for (BundleEntry& entry : bundle.entries) {
      const auto [other, is_new] = bundle_of.emplace(entry.name, file);
      if (!is_new) {
        return MakeError(ErrorCode::kInvalidInput, fmt::format("{}: {} also has a case named '{}'",
                                                               file, other->second, entry.name));
      }
      Result<GoldenCase> golden = ParseGoldenCase(entry.text);
      if (!golden.ok()) return WithLocation(file + ", " + entry.name, golden.error());
      cases.push_back({entry.name, path, entry.line, std::move(entry.text), *std::move(golden)});
    }
  }
  return cases;
}

Result<Done> RewriteCase(const NamedCase& named, const std::string& text) {
  CKPLAN_ASSIGN_OR_RETURN(Bundle bundle, ReadBundle(named.bundle));
  BundleEntry* entry = bundle.Find(named.name);
  if (entry == nullptr) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("{} no longer has the case '{}'",
                                                           named.bundle.string(), named.name));
  }
  entry->text = text;
  return WriteFiles({{named.bundle.string(), FormatBundle(bundle)}});
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
