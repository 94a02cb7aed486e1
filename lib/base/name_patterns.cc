#include "lib/base/name_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/glob.h"
#include "lib/base/nearest_name.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

constexpr std::string_view kTypePrefix = "op:";
constexpr char kNot = '!';

class Pattern {
 public:
  std::string_view text;  // Without the leading "!" and "op:".
  bool chooses = true;    // False: the pattern excludes what it fits.
  bool is_of_type = false;

  // kUsage: the pattern is too long.
  static Result<Pattern> Read(std::string_view written) {
    Pattern pattern;
    if (written.starts_with(kNot)) {
      pattern.chooses = false;
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

  bool Fits(const NamedThing& thing) const {
    if (is_of_type) return MatchesText(thing.type);
    return std::any_of(thing.names.begin(), thing.names.end(),
                       [&](std::string_view name) { return MatchesText(name); });
  }

 private:
  // A name that itself contains wildcards matches the pattern literally.
  bool MatchesText(std::string_view name) const {
    return name == text || (glob_ && glob_->Matches(name));
  }

  std::optional<Glob> glob_;
};

Error FitsNothing(const Pattern& pattern, std::span<const NamedThing> things,
                  std::string_view what) {
  std::vector<std::string_view> known;
  for (const NamedThing& thing : things) {
    if (pattern.is_of_type) {
      known.push_back(thing.type);
    } else {
      known.insert(known.end(), thing.names.begin(), thing.names.end());
    }
  }
  std::string near = IsGlob(pattern.text) ? "" : DidYouMean(pattern.text, known);
  const bool is_list = near.empty() && pattern.text.find(',') != std::string::npos;
  if (is_list) near = "; repeat the flag for each pattern of a list";
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("no {} {} \"{}\"{}", what, pattern.is_of_type ? "is of the type" : "is called",
                  pattern.text, near));
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
    if (i == 0 && !pattern.chooses) is_chosen.assign(things.size(), true);
    bool fits_any = false;
    for (size_t thing = 0; thing < things.size(); ++thing) {
      PollStop();
      if (!pattern.Fits(things[thing])) continue;
      fits_any = true;
      is_chosen[thing] = pattern.chooses;
    }
    if (!fits_any) return FitsNothing(pattern, things, what);
  }
  return is_chosen;
}

}  // namespace ckplan
