// Finds the operators of an attention around a Softmax; see fuse_attention.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lib/files/model/facts.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Which operations read a value in a step, not only its shape, with an effect on the results.
class ValueReaders {
 public:
  ValueReaders(const Model::Impl& model, const ModelFacts& facts);

  std::vector<size_t> Of(ValueIndex value) const;
  bool IsOutput(ValueIndex value) const { return is_output_[static_cast<size_t>(value)]; }
  // The only operation that reads the value, if the value is no output of the model.
  std::optional<size_t> OnlyOf(ValueIndex value) const;

 private:
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> has_effect_;  // By operation.
  std::vector<bool> is_output_;   // By value.
};

// A mask or a bias of the scores.
struct FoundTerm {
  ValueIndex value = kNoValue;
  Dims scores;         // The dimensions that it is broadcast to.
  bool hides = false;  // For booleans: true elements hide keys.
  bool is_bool = false;
};

struct FoundAttention {
  size_t softmax = 0, scores = 0, output = 0;  // Operations.
  ValueIndex result = kNoValue;                // What the operation `output` makes.
  double scale = 1;
  double dropout = 0;  // The ratio of probabilities that are dropped.
  double fill = -std::numeric_limits<double>::infinity();
  std::vector<FoundTerm> terms;  // The one nearest to the Softmax is first.
};

// With `takes_dropout`, the probabilities may pass through a Dropout.
std::optional<FoundAttention> FindAttentionAround(const Model::Impl& model, const ModelFacts& facts,
                                                  const ValueReaders& readers, size_t softmax,
                                                  bool takes_dropout);

// The single number that the value holds, if it is known.
std::optional<double> KnownNumber(const Model::Impl& model, ValueIndex value);

// If the operation multiplies or divides one of its inputs by a known number that is not trained:
// the position of that input, and the factor.
struct KnownFactor {
  size_t position = 0;
  double factor = 1;
};
std::optional<KnownFactor> FactorOf(const Model::Impl& model, const ModelFacts& facts,
                                    const ModelOperation& operation);

// Returns the boolean mask that a term of numbers was made from, as Where(mask, 0, -infinity), or
// the term itself. Takes the term from before an Expand, where it has no gradient.
FoundTerm SimplestTerm(const Model::Impl& model, const ModelFacts& facts, FoundTerm term,
                       double* fill);

// Returns whether the value gets a gradient where it is added to scores.
bool IsTrainedTerm(const ModelFacts& facts, ValueIndex value);

}  // namespace ckplan
