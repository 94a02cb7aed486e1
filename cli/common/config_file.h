// Settings from a file, ckplan.toml. Wraps toml++, which no other file includes.
//
//   budget = "60%"                  as --budget 60%
//   freeze = ["*.bias", "!head*"]   an option that may stand many times
//   [dim]                           as -D N=64 -D T=128
//   N = 64
//   T = 128
//   [check]                         a section: options of one command
//   fail-on = ["peak>16GiB"]
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

inline constexpr std::string_view kConfigName = "ckplan.toml";
inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;

struct ConfigEntry {
  enum class Kind { kText, kNumber, kTruth, kList, kTable };
  std::string section;  // Empty for what stands before all sections.
  std::string key;      // "budget"
  Kind kind = Kind::kText;
  // The value as a command line has it; of a list one text for each element, of a table one for
  // each key: "N=64".
  std::vector<std::string> texts;
  std::string where;  // "ckplan.toml:3"
};

struct ConfigFile {
  std::string path;
  std::vector<ConfigEntry> entries;  // In the order of the file.
};

// The file in the current folder, or in the nearest one above it up to that of the repository,
// which has a ".git"; outside of repositories no other folder is looked in. Nothing if there is
// none.
std::optional<std::string> FindConfigFile();

// kUsage, with file and line: no TOML, a value of a kind that no option takes, or deeper than
// toml_limits.h allows; with the file alone: larger than kMaxConfigBytes. A table is a
// section if `is_section` says so of its name.
Result<ConfigFile> ParseConfig(std::string_view text, const std::string& path,
                               const std::function<bool(const std::string& name)>& is_section);

// The text as a string of TOML.
std::string TomlText(std::string_view text);

}  // namespace ckplan
