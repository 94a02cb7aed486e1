#include "lib/base/name_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/base/text.h"

namespace ckplan {

namespace {

constexpr size_t kByteValues = 256;

}  // namespace

bool IsGlob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

Result<Done> CheckGlob(std::string_view text) {
  if (text.size() <= kMaxGlobBytes || !IsGlob(text)) return Done{};
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("the pattern \"{}\" is too long: patterns with * or ? may have at most {} bytes",
                  Printable(text, kLongestName), kMaxGlobBytes));
}

Glob::Glob(std::string_view pattern) {
  CKPLAN_CHECK(pattern.size() <= kMaxGlobBytes, "CheckGlob accepted the pattern");
  length_ = pattern.size() - static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '*'));
  words_ = length_ / kWordBits + 1;
  takes_.resize(kByteValues * words_);
  stays_.resize(words_);
  size_t state = 0;
  for (const char c : pattern) {
    if (c == '*') {
      Set(&stays_, 0, state);
      continue;
    }
    if (c == '?') {
      for (size_t byte = 0; byte < kByteValues; ++byte) Set(&takes_, byte, state);
    } else {
      Set(&takes_, static_cast<unsigned char>(c), state);
    }
    ++state;
  }
}

void Glob::Set(std::vector<uint64_t>* states, size_t row, size_t state) const {
  (*states)[row * words_ + state / kWordBits] |= uint64_t{1} << (state % kWordBits);
}

bool Glob::Matches(std::string_view name) const {
  constexpr size_t kBetweenPolls = 4096;
  if (name.size() < length_) return false;
  std::array<uint64_t, kMaxWords> states{1};
  for (size_t at = 0; at < name.size(); ++at) {
    if (at % kBetweenPolls == 0) PollStop();
    const uint64_t* const takes = &takes_[static_cast<unsigned char>(name[at]) * words_];
    uint64_t carry = 0;
    uint64_t any = 0;
    for (size_t word = 0; word < words_; ++word) {
      const uint64_t advanced = states[word] & takes[word];
      states[word] = (advanced << 1) | carry | (states[word] & stays_[word]);
      carry = advanced >> (kWordBits - 1);
      any |= states[word];
    }
    if (any == 0) return false;
  }
  return (states[length_ / kWordBits] >> (length_ % kWordBits) & 1) != 0;
}

namespace {

constexpr std::string_view kTypePrefix = "op:";
constexpr char kNot = '!';

class Pattern {
 public:
  std::string_view text;  // Without the leading "!" and "op:".
  bool includes = true;   // False: the pattern excludes what it matches.
  bool is_of_type = false;

  // kUsage: the pattern is too long.
  static Result<Pattern> Read(std::string_view written) {
    Pattern pattern;
    if (written.starts_with(kNot)) {
      pattern.includes = false;
      written.remove_prefix(1);
    }
    if (written.starts_with(kTypePrefix)) {
      pattern.is_of_type = true;
      written.remove_prefix(kTypePrefix.size());
    }
    CKPLAN_RETURN_IF_ERROR(CheckGlob(written));
    pattern.text = written;
    if (IsGlob(written)) pattern.glob_.emplace(written);
    return pattern;
  }

  bool Matches(const NamedThing& thing) const {
    if (is_of_type) return MatchesName(thing.type);
    return std::any_of(thing.names.begin(), thing.names.end(),
                       [&](std::string_view name) { return MatchesName(name); });
  }

 private:
  // A name that itself contains wildcards matches the pattern literally.
  bool MatchesName(std::string_view name) const {
    return name == text || (glob_ && glob_->Matches(name));
  }

  std::optional<Glob> glob_;
};

Error NoMatchError(const Pattern& pattern, std::span<const NamedThing> things,
                   std::string_view what) {
  std::vector<std::string_view> known;
  for (const NamedThing& thing : things) {
    if (pattern.is_of_type) {
      known.push_back(thing.type);
    } else {
      known.insert(known.end(), thing.names.begin(), thing.names.end());
    }
  }
  std::string hint = IsGlob(pattern.text) ? "" : DidYouMean(pattern.text, known);
  const bool is_list = hint.empty() && pattern.text.find(',') != std::string::npos;
  if (is_list) hint = "; repeat the flag for each pattern of a list";
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("no {} {} \"{}\"{}", what, pattern.is_of_type ? "is of the type" : "is called",
                  pattern.text, hint));
}

}  // namespace

Result<std::vector<bool>> ChooseByName(const NamePatterns& patterns,
                                       std::span<const NamedThing> things, std::string_view what) {
  if (patterns.size() > kMaxPatterns) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{} patterns for a {} exceed the limit of {}; combine some with * or ?",
                    patterns.size(), what, kMaxPatterns));
  }
  std::vector<bool> is_chosen(things.size());
  for (size_t i = 0; i < patterns.size(); ++i) {
    CKPLAN_ASSIGN_OR_RETURN(const Pattern pattern, Pattern::Read(patterns[i]));
    if (i == 0 && !pattern.includes) is_chosen.assign(things.size(), true);
    bool fits_any = false;
    for (size_t thing = 0; thing < things.size(); ++thing) {
      PollStop();
      if (!pattern.Matches(things[thing])) continue;
      fits_any = true;
      is_chosen[thing] = pattern.includes;
    }
    if (!fits_any) return NoMatchError(pattern, things, what);
  }
  return is_chosen;
}

}  // namespace ckplan
