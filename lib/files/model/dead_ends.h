// The parts of a model that can't be planned: control flow that can't be unrolled, sequences of
// unknown parts, and inputs that are not numbers. The model is refused only if a planned output
// depends on one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

struct DeadEnd {
  enum class Kind { kInput, kControlFlow, kSequence };
  Kind kind = Kind::kControlFlow;
  std::string what;               // "Loop "li": its number of rounds is unknown"
  std::vector<ValueIndex> reads;  // The node's inputs, including those of its bodies.
};

// Indexed by the values that the dead ends produce.
using DeadEnds = std::map<ValueIndex, DeadEnd>;

// Marks the values that an output of the graph depends on. An operation's inputs precede it in
// `operations`, so one backward walk is enough.
std::vector<bool> FindNeeded(const Model::Impl& model, const DeadEnds& dead_ends);

// Sets the model's live_outputs, and its trainable_ends if no output can be trained.
void MarkDeadOutputs(const DeadEnds& dead_ends, Model::Impl* model);

// Sets the model's live_outputs for a graph without dead ends. Leaves out float outputs that no
// gradient reaches, such as those behind an ArgMax or a comparison. Returns true if it left any
// out.
bool MarkUntrainedOutputs(Model::Impl* model);

// kUnsupported: an output depends on a dead end. The remedy names inputs that would decide the
// matter, or values at which the step could end instead.
Result<Done> CheckDeadEnds(const Model::Impl& model, const DeadEnds& dead_ends,
                           const std::vector<bool>& is_needed, const std::string& file);

// True if the input is short enough to set on a command line. Longer ones are tokens, labels and
// the like.
bool IsPossibleSwitch(const ModelValue& input);

// Returns the integer and boolean inputs that the value depends on.
std::vector<std::string> FindSwitches(const Model::Impl& model, const DeadEnds& dead_ends,
                                      ValueIndex value);

// Makes the remedy set these inputs.
void SuggestContents(const std::set<std::string>& inputs, Error* error);

// Makes the remedy end the step at the model's trainable_ends, if any.
void SuggestEnds(const Model::Impl& model, Error* error);

}  // namespace ckplan
