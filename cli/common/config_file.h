// Reads settings from the file ckplan.toml. It wraps toml++ (toml.h), which no other file includes.
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
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// Limits how deep a TOML text is nested, before it is parsed. toml++ limits the nesting of values,
// but not the number of parts of a key such as a.b.c.d, each of which is a table in the one before.
// Tables are destroyed by recursion, and 100,000 of them overflow any stack.
inline constexpr int64_t kMaxTomlKeyParts = 16;  // This is more than any setting has.
inline constexpr int64_t kMaxTomlNesting = 16;   // Lists and tables nested in each other.

struct TomlFault {
  int64_t line = 0;  // From 1.
  std::string what;
};

// Returns the first place beyond the limits. Dots and brackets in strings and in comments do not
// count. A text that is not TOML is examined at least up to the place where toml++ stops reading.
std::optional<TomlFault> FindDeepToml(std::string_view text);

inline constexpr std::string_view kConfigName = "ckplan.toml";
inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;

struct ConfigEntry {
  enum class Kind { kText, kNumber, kTruth, kList, kTable };
  std::string section;  // Empty for entries before all sections.
  std::string key;      // "budget"
  Kind kind = Kind::kText;
  // The value as on a command line. A list has one text for each element, and a table one for each
  // key: "N=64".
  std::vector<std::string> texts;
  std::string where;                  // "ckplan.toml:3"
  std::vector<std::string> where_of;  // For a table: the place of each text.
};

struct ConfigFile {
  std::string path;
  std::vector<ConfigEntry> entries;  // In the order of the file.
};

// Returns the file in the current folder, or else in the nearest folder above it, up to the
// repository's, which has a ".git". Outside repositories only the current folder is searched.
// Returns nothing if there is no such file.
std::optional<std::string> FindConfigFile();

// kUsage, with file and line: the text is not TOML, a value has a kind that no option takes, or the
// nesting is deeper than FindDeepToml allows. kUsage, with the file alone: the text is larger than
// kMaxConfigBytes. A table is a section if `is_section` accepts its name.
Result<ConfigFile> ParseConfig(std::string_view text, const std::string& path,
                               const std::function<bool(const std::string& name)>& is_section);

std::string TomlText(std::string_view text);

}  // namespace ckplan
