// Finds the operators of an attention around a Softmax, and the axes of its heads; see
// fuse_attention.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lib/files/model/constant.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Follows the axes of an attention through transposes and reshapes, to find where in memory the
// rows of each head lie before or after their heads are moved.
//
//   x [B,S,H*D] ─ Reshape ─▶ [B,S,H,D] ─ Transpose ─▶ [B,H,S,D], an operand of a product
//                                                     b h s d
//   x holds the same elements in the order "bshd".
class HeadAxes {
 public:
  // `letters` has one letter for each dimension: b, h, s or d. Neighbouring dimensions with the
  // same letter are one axis.
  HeadAxes(const Dims& dims, const std::string& letters);

  // What a Transpose of the given order makes of the tensor, and what it was made from.
  HeadAxes TransposedBy(const std::vector<int64_t>& order) const;
  HeadAxes BeforeTransposeBy(const std::vector<int64_t>& order) const;
  // Gives the elements other dimensions; nothing if a dimension would have parts of two axes
  // that do not divide it.
  std::optional<HeadAxes> Reshaped(const Dims& dims) const;
  // What an Expand to these dimensions has repeated; `dims` are those before it. Only the innermost
  // part of the heads may be repeated: nothing otherwise.
  std::optional<HeadAxes> BeforeExpand(const Dims& dims) const;

  // How often each head was repeated.
  int64_t repeats() const { return repeats_; }
  // The order of the axes in memory: "bshd"; nothing if an axis is in several places, or the
  // elements of a row are not last.
  std::optional<std::string> Order() const;

 private:
  // A part of an axis: elements `place` apart.
  struct Factor {
    char axis = 'b';
    int64_t size = 1;
    int64_t place = 1;
  };

  HeadAxes() = default;
  std::vector<Factor> Flat() const;

  std::vector<std::vector<Factor>> dims_;  // By dimension, from the outermost.
  int64_t repeats_ = 1;
};

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
