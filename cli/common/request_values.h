// Reads the values of the flags that fill in a PlanRequest (request_flags.h). All return kUsage,
// with the flag, for malformed text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/request_fields.h"

namespace ckplan {

// A flag as messages name it, and the form of its value: "--dim", "NAME=N".
struct FlagForm {
  std::string flag;
  std::string_view form;
};

// Splits a list at its commas. An empty text has one part, which is empty.
std::vector<std::string> PartsOfList(std::string_view list);

Result<Done> ReadDims(const FlagForm& form, const std::vector<std::string>& texts, DimSizes* dims);
Result<Done> ReadShapes(const FlagForm& form, const std::vector<std::string>& texts,
                        InputShapes* shapes);
// Each text is a pattern, or "@" followed by a file of patterns.
Result<Done> ReadPatterns(const FlagForm& form, const std::vector<std::string>& texts,
                          NamePatterns* patterns);
Result<KnobSetting> ReadSetting(const FlagForm& form, std::string_view text);
Result<PipelineStage> ReadStage(const FlagForm& form, std::string_view text);
// Each text is one name, or several names with commas between them.
Result<Done> ReadNames(const FlagForm& form, const std::vector<std::string>& texts,
                       std::vector<std::string>* names);
// Each text is a list of patterns with commas between them, or "@" followed by a file of patterns.
Result<Done> ReadPatternLists(const FlagForm& form, const std::vector<std::string>& texts,
                              NamePatterns* patterns);
// Reads "mask=[1,0]", "n=@n.npy" or "mask=@mask.json": see lib/planning/plan/set_input.h.
Result<Done> ReadSetInputs(const FlagForm& form, const std::vector<std::string>& texts,
                           std::vector<std::string>* inputs);
// Reads "acme::Norm=like:0": see lib/problem/ops/op_hint.h.
Result<Done> ReadOpShapes(const FlagForm& form, const std::vector<std::string>& texts,
                          std::vector<std::string>* op_shapes);
Result<Sharding> ReadSharding(const FlagForm& form, const std::string& text);
// Reads "pcie5:50/50,half": see lib/problem/cost/link.h.
Result<Link> ReadLink(const FlagForm& form, std::string_view text);
// Reads a size such as "24GiB", or the name of a device preset, whose memory it returns.
Result<Budget> ReadMemory(const FlagForm& form, const std::string& text);
// Reads "10%" or "10". kUsage: it is no percentage from 0 to 1000.
Result<Budget> ReadAddedTime(const FlagForm& form, std::string_view text);

// The words of flags that take one of a few, where the command line differs from the table of
// fields (lib/planning/plan/request_fields.h): which word is the default, and how it is spelled.
// Plans keep the words and the defaults of the table, so old plans mean what they meant.

// How models are read where no flag says it: as PyTorch ran them, or operator by operator.
enum class Reading { kCaptured, kOperators };

// Returns whether the field's default on the command line differs from that of a request.
bool HasDefaultOfReading(std::string_view field, Reading reading);

// The functions below are for fields with a WordsMember.

// Returns the words that may be typed, the default first.
std::vector<std::string> WordChoices(const RequestField& field, Reading reading);
// Returns spellings of before that may be typed as well.
std::vector<std::string> OldSpellings(const RequestField& field);
// Sets the field to a word as it is typed.
void SetByTypedWord(const RequestField& field, std::string_view word, PlanRequest* request);
// Returns the field's word as it is typed, or "" if it is the default.
std::string_view WordToType(const RequestField& field, const PlanRequest& request);

}  // namespace ckplan
