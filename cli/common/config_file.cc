#include "cli/common/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "cli/common/toml.h"
#include "lib/planning/plan/set_input.h"

namespace ckplan {
namespace {

class TomlScanner {
 public:
  explicit TomlScanner(std::string_view text) : text_(text) {}

  std::optional<TomlFault> Run() {
    while (at_ < text_.size()) {
      Step();
      if (dots_ >= kMaxTomlKeyParts) {
        return Fault(fmt::format("a key has more than {} parts", kMaxTomlKeyParts));
      }
      if (depth_ > kMaxTomlNesting) {
        return Fault(fmt::format("lists and tables are nested more than {} deep", kMaxTomlNesting));
      }
    }
    return std::nullopt;
  }

 private:
  TomlFault Fault(std::string what) const {
    const auto lines = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
    return {lines + 1, what + "; no setting of ckplan needs so many"};
  }

  void Step() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') return SkipString(c);
    if (c == '#') return SkipTo('\n');
    ++at_;
    if (c == '.') {
      ++dots_;
    } else if (c == '[' || c == '{') {
      ++depth_;
      dots_ = 0;
    } else if (c == ']' || c == '}') {
      depth_ = std::max<int64_t>(depth_ - 1, 0);
      dots_ = 0;
    } else if (c == '\n' || c == '=' || c == ',') {
      dots_ = 0;
    }
  }

  void SkipTo(char end) { at_ = std::min(text_.find(end, at_), text_.size()); }

  // Returns how often the character is repeated here, up to `most` times.
  size_t Run(char c, size_t most) const {
    size_t count = 0;
    while (count < most && at_ + count < text_.size() && text_[at_ + count] == c) ++count;
    return count;
  }

  void SkipString(char quote) {
    const size_t opening = Run(quote, 3);
    at_ += opening;
    if (opening == 2) return;  // An empty string.
    const bool has_lines = opening == 3;
    const bool has_escapes = quote == '"';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && has_escapes) {
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == '\n' && !has_lines) {
        return;  // The string does not end, so toml++ stops here.
      } else if (c == quote) {
        // A multi-line string may have up to two quotes just before the three that end it.
        const size_t closing = has_lines ? Run(quote, 5) : 1;
        at_ += closing;
        if (!has_lines || closing >= 3) return;
      } else {
        ++at_;
      }
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
  int64_t dots_ = 0;   // Dots in the current key.
  int64_t depth_ = 0;  // Number of open brackets and braces.
};

}  // namespace

std::optional<TomlFault> FindDeepToml(std::string_view text) { return TomlScanner(text).Run(); }

namespace {

namespace fs = std::filesystem;
using EntryKind = ConfigEntry::Kind;

bool Exists(const fs::path& path) {
  std::error_code fault;
  return fs::exists(path, fault);
}

// Reads the entries of a document, and keeps the fault that comes first in the file.
class EntryReader {
 public:
  EntryReader(const std::string& path, const std::function<bool(const std::string&)>& is_section)
      : path_(path), is_section_(is_section) {}

  void ReadDocument(const toml::table& document) {
    for (const auto& member : document) {
      const std::string key(member.first.str());
      const toml::table* const table = member.second.as_table();
      if (table != nullptr && is_section_(key)) {
        for (const auto& inner : *table)
          ReadEntry(key, std::string(inner.first.str()), inner.second);
      } else {
        ReadEntry("", key, member.second);
      }
    }
  }

  Result<std::vector<ConfigEntry>> Finish() && {
    if (fault_) return *fault_;
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Placed& a, const Placed& b) { return a.line < b.line; });
    std::vector<ConfigEntry> entries;
    for (Placed& placed : entries_) entries.push_back(std::move(placed.entry));
    return entries;
  }

 private:
  struct Placed {
    toml::source_index line = 0;
    ConfigEntry entry;
  };

  void Fail(toml::source_index line, const std::string& message) {
    if (fault_ && fault_line_ <= line) return;
    fault_line_ = line;
    fault_ = MakeError(ErrorCode::kUsage, fmt::format("{}:{}: {}", path_, line, message));
  }

  void ReadEntry(const std::string& section, const std::string& key, const toml::node& value) {
    const toml::source_index line = value.source().begin.line;
    ConfigEntry entry{section, key, EntryKind::kText, {}, fmt::format("{}:{}", path_, line), {}};
    if (const toml::array* const list = value.as_array()) {
      entry.kind = EntryKind::kList;
      for (const toml::node& element : *list) entry.texts.push_back(Scalar(key, element, nullptr));
    } else if (const toml::table* const table = value.as_table()) {
      entry.kind = EntryKind::kTable;
      for (const auto& member : *table) {
        const std::string name(member.first.str());
        entry.texts.push_back(name + "=" + Joined(name, member.second));
        entry.where_of.push_back(fmt::format("{}:{}", path_, member.second.source().begin.line));
      }
    } else {
      entry.texts.push_back(Scalar(key, value, &entry.kind));
    }
    entries_.push_back({line, std::move(entry)});
  }

  // Joins the elements of a list with commas: [2, 3, 64] becomes "2,3,64". Lists of lists keep
  // their brackets.
  std::string Joined(const std::string& key, const toml::node& value) {
    const toml::array* const list = value.as_array();
    if (list == nullptr) return ValueIn(key, value);
    const std::string text = ValueIn(key, value);
    const bool is_nested = text.find('[', 1) != std::string::npos;
    return is_nested ? text : text.substr(1, text.size() - 2);
  }

  // Returns a value of a table: a number, a switch, text, or lists of them in brackets.
  std::string ValueIn(const std::string& key, const toml::node& value) {
    if (const auto* const truth = value.as_boolean()) return truth->get() ? "true" : "false";
    if (const auto* const real = value.as_floating_point(); real && std::isfinite(real->get())) {
      return TextOfReal(real->get());
    }
    const toml::array* const list = value.as_array();
    if (list == nullptr) return Scalar(key, value, nullptr);
    std::vector<std::string> texts;
    for (const toml::node& element : *list) texts.push_back(ValueIn(key, element));
    return fmt::format("[{}]", fmt::join(texts, ","));
  }

  // `kind` is null where a truth value makes no sense.
  std::string Scalar(const std::string& key, const toml::node& value, EntryKind* kind) {
    if (const auto* const text = value.as_string()) return text->get();
    if (const auto* const number = value.as_integer()) {
      if (kind != nullptr) *kind = EntryKind::kNumber;
      return std::to_string(number->get());
    }
    const auto* const truth = value.as_boolean();
    if (truth != nullptr && kind != nullptr) {
      *kind = EntryKind::kTruth;
      return truth->get() ? "true" : "false";
    }
    Fail(value.source().begin.line,
         fmt::format("{} is neither quoted text nor a whole number", key));
    return "";
  }

  const std::string& path_;
  const std::function<bool(const std::string&)>& is_section_;
  std::vector<Placed> entries_;
  std::optional<Error> fault_;
  toml::source_index fault_line_ = 0;
};

}  // namespace

std::optional<std::string> FindConfigFile() {
  std::error_code fault;
  fs::path folder = fs::current_path(fault);
  fs::path shown = kConfigName;
  if (fault) return std::nullopt;
  if (Exists(shown)) return shown.string();
  // Folders above the current one are searched only within a repository.
  std::optional<std::string> found;
  for (fs::path up = "..";; up /= "..") {
    if (Exists(folder / ".git")) return found;
    if (folder == folder.parent_path()) return std::nullopt;
    folder = folder.parent_path();
    if (!found && Exists(up / kConfigName)) found = (up / kConfigName).generic_string();
  }
}

Result<ConfigFile> ParseConfig(std::string_view text, const std::string& path,
                               const std::function<bool(const std::string& name)>& is_section) {
  if (text.size() > kMaxConfigBytes) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: it has {} bytes, and settings may have at most {}; put long "
                                 "lists of patterns in a file and name it as \"@FILE\"",
                                 path, text.size(), kMaxConfigBytes));
  }
  if (const std::optional<TomlFault> fault = FindDeepToml(text)) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}:{}: {}", path, fault->line, fault->what));
  }
  const toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed) {
    const toml::parse_error& fault = parsed.error();
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}:{}: invalid TOML: {}", path, fault.source().begin.line,
                                 fault.description()));
  }
  EntryReader reader(path, is_section);
  reader.ReadDocument(parsed.table());
  CKPLAN_ASSIGN_OR_RETURN(std::vector<ConfigEntry> entries, std::move(reader).Finish());
  return ConfigFile{path, std::move(entries)};
}

std::string TomlText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace ckplan
