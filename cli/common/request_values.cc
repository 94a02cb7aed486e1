#include "cli/common/request_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "cli/common/npy.h"
#include "cli/common/request_flags.h"
#include "cli/common/size_arg.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/set_input.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/ops/op_hint.h"

namespace ckplan {
namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int64_t>::max();
// A number without a unit up to this one was meant as gibibytes: no device has so few bytes.
constexpr int64_t kMaxGibibytes = 4096;
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxSetFileBytes = size_t{1} << 20;

Error AddFlagName(const FlagForm& form, Error error) {
  error.message.insert(0, form.flag + ": ");
  return error;
}

// Replaces "INPUT=@FILE" by the contents of the file: an array of NumPy's, or JSON.
Result<std::string> ReadFileContents(const FlagForm& form, const std::string& text) {
  const size_t at = text.rfind("=@");
  if (at == text.npos) return text;
  const std::string path = text.substr(at + 2);
  CKPLAN_ASSIGN_OR_RETURN(std::string value, ReadWholeFile(path));
  if (path.ends_with(".npy")) {
    CKPLAN_ASSIGN_OR_RETURN(value, NpyAsText(value, path));
  } else if (value.size() > kMaxSetFileBytes) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: {} is larger than {} KiB, the limit for the contents of an "
                                 "input",
                                 form.flag, path, kMaxSetFileBytes >> 10));
  }
  return text.substr(0, at + 1) + value;
}

struct NamedText {
  std::string name;
  std::string_view text;
};

// Splits "NAME=TEXT", where NAME may contain "=".
Result<NamedText> SplitNamed(std::string_view text, std::string_view flag, std::string_view form) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" is not of the form {}", flag,
                                                    text.substr(0, 80), form));
  }
  return NamedText{std::string(text.substr(0, equals)), text.substr(equals + 1)};
}

}  // namespace

std::vector<std::string> PartsOfList(std::string_view list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<Done> ReadDims(const FlagForm& form, const std::vector<std::string>& texts, DimSizes* dims) {
  const std::string& flag = form.flag;
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(const NamedText dim, SplitNamed(text, flag, form.form));
    CKPLAN_ASSIGN_OR_RETURN(const int64_t size,
                            ParseInteger(dim.text, flag + " " + dim.name, 0, kMaxDim));
    if (!dims->emplace(dim.name, size).second) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: {} is bound twice", flag, dim.name));
    }
  }
  return Done{};
}

Result<Done> ReadShapes(const FlagForm& form, const std::vector<std::string>& texts,
                        InputShapes* shapes) {
  const std::string& flag = form.flag;
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(const NamedText shape, SplitNamed(text, flag, form.form));
    std::vector<int64_t> sizes;
    for (std::string_view rest = shape.text;;) {
      const size_t comma = rest.find(',');
      CKPLAN_ASSIGN_OR_RETURN(
          const int64_t size,
          ParseInteger(rest.substr(0, comma), flag + " " + shape.name, 0, kMaxDim));
      sizes.push_back(size);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (!shapes->emplace(shape.name, std::move(sizes)).second) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: {} has two shapes", flag, shape.name));
    }
  }
  return Done{};
}

// Each text is a pattern, or "@" followed by a file of patterns.
Result<Done> ReadPatterns(const FlagForm& form, const std::vector<std::string>& texts,
                          NamePatterns* patterns) {
  for (const std::string& text : texts) {
    if (!text.starts_with('@')) {
      patterns->push_back(text);
      continue;
    }
    CKPLAN_ASSIGN_OR_RETURN(const std::string file, ReadWholeFile(text.substr(1)));
    const NamePatterns listed = PatternsInText(file);
    patterns->insert(patterns->end(), listed.begin(), listed.end());
    if (!listed.empty()) continue;
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: \"{}\" has no patterns; write one per line", form.flag, text.substr(1)));
  }
  return Done{};
}

Result<KnobSetting> ReadSetting(const FlagForm& form, std::string_view text) {
  const std::string& flag = form.flag;
  CKPLAN_ASSIGN_OR_RETURN(const NamedText setting, SplitNamed(text, flag, form.form));
  const std::vector<std::string_view> names = KnobNames();
  if (std::count(names.begin(), names.end(), setting.name) == 0) {
    const std::string hint = DidYouMean(setting.name, names);
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: no algorithm has a parameter \"{}\"{} they are {}; see `ckplan algos`",
                    flag, setting.name, hint.empty() ? ";" : hint, fmt::join(names, ", ")));
  }
  const std::string where = flag + " " + setting.name;
  if (!IsInBytes(setting.name)) {
    CKPLAN_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(setting.text, where, 0, kMaxCount));
    return KnobSetting{setting.name, value};
  }
  CKPLAN_ASSIGN_OR_RETURN(const Bytes size, ParseSize(setting.text, where));
  return KnobSetting{setting.name, size.count()};
}

Result<PipelineStage> ReadStage(const FlagForm& form, std::string_view text) {
  const std::string& flag = form.flag;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" is not of the form {}", flag,
                                                    text.substr(0, 80), form.form));
  }
  PipelineStage stage;
  CKPLAN_ASSIGN_OR_RETURN(stage.stages,
                          ParseInteger(text.substr(0, slash), flag + " STAGES", 1, kMaxStages));
  CKPLAN_ASSIGN_OR_RETURN(
      stage.index, ParseInteger(text.substr(slash + 1), flag + " INDEX", 0, stage.stages - 1));
  return stage;
}

// Each text is one name, or several names with commas between them.
Result<Done> ReadNames(const FlagForm& form, const std::vector<std::string>& texts,
                       std::vector<std::string>* names) {
  for (const std::string& text : texts) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end == at) {
        return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" has a name without a letter",
                                                        form.flag, text.substr(0, 80)));
      }
      names->push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  return Done{};
}

// Each text is a list of patterns, or "@" followed by a file of patterns.
Result<Done> ReadPatternLists(const FlagForm& form, const std::vector<std::string>& texts,
                              NamePatterns* patterns) {
  for (const std::string& text : texts) {
    const auto read = text.starts_with('@') ? ReadPatterns : ReadNames;
    CKPLAN_RETURN_IF_ERROR(read(form, {text}, patterns));
  }
  return Done{};
}

Result<Done> ReadSetInputs(const FlagForm& form, const std::vector<std::string>& texts,
                           std::vector<std::string>* inputs) {
  std::set<std::string> names;
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(const std::string value, ReadFileContents(form, text));
    Result<SetInput> input = ParseSetInput(value);
    if (!input.ok()) return AddFlagName(form, std::move(input).error());
    if (!names.insert(input->name).second) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: {} has two values", form.flag, input->name));
    }
    inputs->push_back(TextOf(*input));
  }
  return Done{};
}

Result<Done> ReadOpShapes(const FlagForm& form, const std::vector<std::string>& texts,
                          std::vector<std::string>* op_shapes) {
  std::set<std::pair<std::string, std::string>> described;
  for (const std::string& text : texts) {
    Result<OpHint> hint = ParseOpHint(text);
    if (!hint.ok()) return AddFlagName(form, std::move(hint).error());
    if (!described.emplace(hint->domain, hint->type).second) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: {} is described twice", form.flag,
                                                      text.substr(0, text.find('='))));
    }
    op_shapes->push_back(CanonicalOpHint(text));
  }
  return Done{};
}

Result<Sharding> ReadSharding(const FlagForm& form, const std::string& text) {
  const std::string& flag = form.flag;
  const size_t colon = text.find(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  const auto* const system =
      std::find(std::begin(kShardingSystems), std::end(kShardingSystems), name);
  if (system == std::end(kShardingSystems)) {
    const std::string hint = DidYouMean(name, kShardingSystems);
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: unknown system \"{}\"{} the systems are {}", flag, name.substr(0, 80),
                    hint.empty() ? ";" : hint, fmt::join(kShardingSystems, ", ")));
  }
  if (colon == std::string::npos) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: \"{}\" is not of the form {}: among how many devices?", flag,
                                 name, form.form));
  }
  CKPLAN_ASSIGN_OR_RETURN(
      const int64_t devices,
      ParseInteger(std::string_view(text).substr(colon + 1), fmt::format("{} {}", flag, name),
                   kMinShardingDevices, kMaxShardingDevices));
  return Sharding{static_cast<ShardingSystem>(system - std::begin(kShardingSystems)), devices};
}

Result<Link> ReadLink(const FlagForm& form, std::string_view text) {
  Result<Link> link = ParseLink(text);
  if (link.ok()) return link;
  Error error = std::move(link).error();
  error.message = fmt::format("{}: {}", form.flag, error.message);
  return error;
}

Result<Budget> ReadMemory(const FlagForm& form, const std::string& text) {
  // No preset begins with a digit.
  const bool is_size = text.empty() || text.front() == '-' || text.front() == '.' ||
                       (text.front() >= '0' && text.front() <= '9');
  if (!is_size) {
    CKPLAN_ASSIGN_OR_RETURN(const Device device, FindDevice(text));
    Budget memory = Budget::Of(device.memory);
    memory.device = device.name;
    return memory;
  }
  CKPLAN_ASSIGN_OR_RETURN(const Bytes bytes, ParseSize(text, form.flag));
  const bool is_bare =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_bare && bytes.count() <= kMaxGibibytes) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{0}: {1} is {1} bytes; did you mean {1}GiB?", form.flag, text));
  }
  return Budget::Of(bytes);
}

Result<Budget> ReadAddedTime(const FlagForm& form, std::string_view text) {
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  double percent = -1;
  const auto [rest, fault] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_whole = fault == std::errc() && rest == number.data() + number.size();
  if (is_whole && percent >= 0 && percent <= kLargestAddedPercent) {
    return Budget{Budget::Kind::kPercent, Bytes(0), percent};
  }
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("{}: \"{}\" is not a percentage of a step from 0 to {}; write it like 10%",
                  form.flag, text.substr(0, 80), kLargestAddedPercent));
}

namespace {

struct WordOfField {
  std::string_view field;
  std::string_view word;  // As in the table of fields.
};

struct Spelling {
  WordOfField word;
  std::string_view typed;
};
constexpr std::array kSpellings = {Spelling{{"autograd", "torch"}, "torch-cpu"}};

const WordsMember& WordsIn(const RequestField& field) {
  return std::get<WordsMember>(field.member);
}

std::string_view Typed(const RequestField& field, std::string_view word) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.word.field == field.name && spelling.word.word == word) return spelling.typed;
  }
  return word;
}

// Returns the default word, as in the table of fields.
std::string_view DefaultWord(const RequestField& field, Reading reading) {
  const PlanRequest captured = RequestAsPyTorchRuns();
  return WordsIn(field).words[reading == Reading::kCaptured ? WordsIn(field).get(captured) : 0];
}

}  // namespace

bool HasDefaultOfReading(std::string_view field, Reading reading) {
  return reading == Reading::kCaptured &&
         RequestAsPyTorchRuns().implied.contains(std::string(field));
}

std::vector<std::string> WordChoices(const RequestField& field, Reading reading) {
  std::vector<std::string> typed = {std::string(Typed(field, DefaultWord(field, reading)))};
  for (const std::string_view word : WordsIn(field).words) {
    if (word != DefaultWord(field, reading)) typed.emplace_back(Typed(field, word));
  }
  return typed;
}

std::vector<std::string> OldSpellings(const RequestField& field) {
  std::vector<std::string> older;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.word.field == field.name) older.emplace_back(spelling.word.word);
  }
  return older;
}

void SetByTypedWord(const RequestField& field, std::string_view word, PlanRequest* request) {
  const WordsMember& member = WordsIn(field);
  for (size_t i = 0; i < member.words.size(); ++i) {
    const bool is_meant = member.words[i] == word || Typed(field, member.words[i]) == word;
    if (is_meant) member.set(request, i);
  }
}

std::string_view WordToType(const RequestField& field, const PlanRequest& request) {
  const std::string_view word = WordsIn(field).words[WordsIn(field).get(request)];
  return word == DefaultWord(field, Reading::kCaptured) ? std::string_view() : Typed(field, word);
}

}  // namespace ckplan
