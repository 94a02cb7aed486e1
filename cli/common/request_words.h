// The words of flags that take one of a few, where the command line differs from the table of
// fields (lib/planning/plan/request_fields.h): which word is meant where none is typed, and how it
// is spelled. Plans keep the words and the defaults of the table, so old plans mean what they
// meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/plan/request_fields.h"

namespace ckplan {

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
// Returns the field's word as it is typed, or "" where it need not be.
std::string_view WordToType(const RequestField& field, const PlanRequest& request);

}  // namespace ckplan
