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

// Follows the axes of an attention through transposes and reshapes to find where each head's rows
// are in memory before or after the heads move.
//
//   x [B,S,H*D] ─ Reshape ─▶ [B,S,H,D] ─ Transpose ─▶ [B,H,S,D], an operand of a product
//                                                     b h s d
//   x holds the same elements in the order "bshd".
class HeadAxes {
 public:
  // `letters` has one letter per dimension: b, h, s or d. Adjacent dimensions with the same letter
  // are one axis.
  HeadAxes(const Dims& dims, const std::string& letters);

  // Returns the axes after a Transpose with this order, and the axes before one.
  HeadAxes TransposedBy(const std::vector<int64_t>& order) const;
  HeadAxes BeforeTransposeBy(const std::vector<int64_t>& order) const;
  // Changes the dimensions; nullopt if a dimension would contain parts of two axes that do not
  // divide it.
  std::optional<HeadAxes> Reshaped(const Dims& dims) const;
  // Returns the axes before an Expand from `dims`; nullopt unless only the innermost part of the
  // heads is repeated.
  std::optional<HeadAxes> BeforeExpand(const Dims& dims) const;

  // How many times each head is repeated.
  int64_t repeats() const { return repeats_; }
  // The order of the axes in memory: "bshd"; nullopt if an axis is split up or the elements of a
  // row are not last.
  std::optional<std::string> Order() const;

 private:
  // A part of an axis whose elements are `place` apart.
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

// The operations that read a value during a step (not only its shape) and affect the results.
class ValueReaders {
 public:
  ValueReaders(const Model::Impl& model, const ModelFacts& facts);

  std::vector<size_t> Of(ValueIndex value) const;
  bool IsOutput(ValueIndex value) const { return is_output_[static_cast<size_t>(value)]; }
  // The only operation that reads the value; nullopt if the value is also an output of the model.
  std::optional<size_t> OnlyOf(ValueIndex value) const;

 private:
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> has_effect_;  // By operation.
  std::vector<bool> is_output_;   // By value.
};

// A mask or a bias added to the scores.
struct FoundTerm {
  ValueIndex value = kNoValue;
  Dims scores;         // The dimensions that it is broadcast to.
  bool hides = false;  // For booleans: true hides a key.
  bool is_bool = false;
};

struct FoundAttention {
  size_t softmax = 0, scores = 0, output = 0;  // Operations.
  ValueIndex result = kNoValue;                // The result of the operation `output`.
  double scale = 1;
  double dropout = 0;  // The fraction of dropped probabilities.
  double fill = -std::numeric_limits<double>::infinity();
  std::vector<FoundTerm> terms;  // Starting nearest to the Softmax.
};

// With `takes_dropout`, a Dropout may follow the probabilities.
std::optional<FoundAttention> FindAttentionAround(const Model::Impl& model, const ModelFacts& facts,
                                                  const ValueReaders& readers, size_t softmax,
                                                  bool takes_dropout);

// Returns the number in a value with one known element.
std::optional<double> KnownNumber(const Model::Impl& model, ValueIndex value);

// If the operation multiplies or divides an input by a known untrained number: the position of that
// input, and the factor.
struct KnownFactor {
  size_t position = 0;
  double factor = 1;
};
std::optional<KnownFactor> FactorOf(const Model::Impl& model, const ModelFacts& facts,
                                    const ModelOperation& operation);

// Returns the boolean mask that a numeric term was made from, as in Where(mask, 0, -infinity), or
// the term itself. Skips an Expand if the term has no gradient.
FoundTerm SimplestTerm(const Model::Impl& model, const ModelFacts& facts, FoundTerm term,
                       double* fill);

// True if the value gets a gradient when it is added to scores.
bool IsTrainedTerm(const ModelFacts& facts, ValueIndex value);

}  // namespace ckplan
