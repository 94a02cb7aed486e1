// Where the planning of a file ends: control flow that can't be unrolled, sequences of unknown
// parts, and inputs that are no numbers. A dead end refuses the model only if a planned output
// depends on it.
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
  std::vector<ValueIndex> reads;  // What the node reads, also in its bodies.
};

// By the values that they make.
using DeadEnds = std::map<ValueIndex, DeadEnd>;

// Returns for each value whether an output of the graph depends on it. Operations before
// `operations` in the list come first, so one walk backwards is enough.
std::vector<bool> FindNeeded(const Model::Impl& model, const DeadEnds& dead_ends);

// Fills in live_outputs of the model, and trainable_ends if no output can be trained.
void MarkDeadOutputs(const DeadEnds& dead_ends, Model::Impl* model);

// The same for a graph without dead ends, where the float outputs that no gradient leaves (those
// behind an ArgMax or a comparison) can't be trained either. Returns whether there are such
// outputs, or others that aren't floats.
bool MarkUntrainedOutputs(Model::Impl* model);

// kUnsupported: an output depends on a dead end. The remedy names inputs that would decide the
// matter, or values at which the step could end instead.
Result<Done> CheckDeadEnds(const Model::Impl& model, const DeadEnds& dead_ends,
                           const std::vector<bool>& is_needed, const std::string& file);

// Returns whether the input is short enough to be set on a command line. Longer ones are tokens,
// labels and the like.
bool MayBeSwitch(const ModelValue& input);

// Returns the inputs of whole numbers and switches that the value depends on.
std::vector<std::string> SwitchesBehind(const Model::Impl& model, const DeadEnds& dead_ends,
                                        ValueIndex value);

// Sets the remedy that sets these inputs.
void SuggestContents(const std::set<std::string>& inputs, Error* error);

// Sets the remedy that ends the step at the model's trainable_ends, if there are any.
void SuggestEnds(const Model::Impl& model, Error* error);

}  // namespace ckplan
