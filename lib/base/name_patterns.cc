#include "lib/base/name_patterns.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/glob.h"
#include "lib/base/nearest_name.h"

namespace ckplan {
namespace {

constexpr std::string_view kTypePrefix = "op:";
constexpr char kNot = '!';

struct Pattern {
  std::string_view text;  // Without the signs in front.
  bool chooses = true;    // Else what fits is not chosen.
  bool is_of_type = false;

  explicit Pattern(std::string_view pattern) : text(pattern) {
    if (text.starts_with(kNot)) {
      chooses = false;
      text.remove_prefix(1);
    }
    if (text.starts_with(kTypePrefix)) {
      is_of_type = true;
      text.remove_prefix(kTypePrefix.size());
    }
  }

  bool Fits(const NamedThing& thing) const {
    if (is_of_type) return MatchesGlob(text, thing.type);
    // A name that has wildcards in it is meant by itself.
    return std::any_of(thing.names.begin(), thing.names.end(), [&](std::string_view name) {
      return name == text || MatchesGlob(text, name);
    });
  }
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
  const std::string near = IsGlob(pattern.text) ? "" : DidYouMean(pattern.text, known);
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("no {} {} \"{}\"{}", what, pattern.is_of_type ? "is of the type" : "is called",
                  pattern.text, near));
}

}  // namespace

Result<std::vector<bool>> ChooseByName(const NamePatterns& patterns,
                                       std::span<const NamedThing> things, std::string_view what) {
  std::vector<bool> is_chosen(things.size());
  for (size_t i = 0; i < patterns.size(); ++i) {
    const Pattern pattern(patterns[i]);
    if (i == 0 && !pattern.chooses) is_chosen.assign(things.size(), true);
    bool fits_any = false;
    for (size_t thing = 0; thing < things.size(); ++thing) {
      if (!pattern.Fits(things[thing])) continue;
      fits_any = true;
      is_chosen[thing] = pattern.chooses;
    }
    if (!fits_any) return FitsNothing(pattern, things, what);
  }
  return is_chosen;
}

}  // namespace ckplan
