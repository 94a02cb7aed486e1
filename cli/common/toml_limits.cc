#include "cli/common/toml_limits.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace ckplan
