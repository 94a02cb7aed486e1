#include "lib/files/model/attention_pattern.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "lib/files/model/op_spec_of.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

HeadAxes::HeadAxes(const Dims& dims, const std::string& letters) : dims_(dims.size()) {
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t place = 1;
    for (size_t inner = i + 1; inner < dims.size(); ++inner) {
      if (letters[inner] == letters[i]) place *= dims[inner];
    }
    if (dims[i] > 1) dims_[i] = {{letters[i], dims[i], place}};
  }
}

HeadAxes HeadAxes::TransposedBy(const std::vector<int64_t>& order) const {
  HeadAxes result = *this;
  for (size_t i = 0; i < order.size(); ++i) result.dims_[i] = dims_[static_cast<size_t>(order[i])];
  return result;
}

HeadAxes HeadAxes::BeforeTransposeBy(const std::vector<int64_t>& order) const {
  HeadAxes result = *this;
  for (size_t i = 0; i < order.size(); ++i) result.dims_[static_cast<size_t>(order[i])] = dims_[i];
  return result;
}

std::vector<HeadAxes::Factor> HeadAxes::Flat() const {
  std::vector<Factor> flat;
  for (const std::vector<Factor>& dim : dims_) flat.insert(flat.end(), dim.begin(), dim.end());
  return flat;
}

std::optional<HeadAxes> HeadAxes::Reshaped(const Dims& dims) const {
  std::vector<Factor> flat = Flat();
  std::reverse(flat.begin(), flat.end());  // The outermost is at the back.
  HeadAxes result;
  result.repeats_ = repeats_;
  for (const int64_t dim : dims) {
    std::vector<Factor> own;
    int64_t left = dim;
    while (left > 1) {
      if (flat.empty()) return std::nullopt;
      Factor& next = flat.back();
      if (left % next.size == 0) {
        left /= next.size;
        own.push_back(next);
        flat.pop_back();
        continue;
      }
      if (next.size % left != 0) return std::nullopt;
      next.size /= left;
      own.push_back({next.axis, left, next.place * next.size});
      left = 1;
    }
    result.dims_.push_back(std::move(own));
  }
  if (!flat.empty()) return std::nullopt;
  return result;
}

std::optional<HeadAxes> HeadAxes::BeforeExpand(const Dims& dims) const {
  const size_t missing = dims_.size() - std::min(dims.size(), dims_.size());
  HeadAxes result = *this;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const bool is_repeated = (i < missing || dims[i - missing] == 1) && !dims_[i].empty();
    if (!is_repeated) continue;
    const Factor& factor = dims_[i].front();
    if (dims_[i].size() > 1 || factor.axis != 'h' || factor.place != 1 || result.repeats_ > 1) {
      return std::nullopt;
    }
    result.repeats_ = factor.size;
    result.dims_[i].clear();
  }
  result.dims_.erase(result.dims_.begin(), result.dims_.begin() + static_cast<int64_t>(missing));
  if (result.repeats_ == repeats_) return result;
  for (std::vector<Factor>& dim : result.dims_) {
    for (Factor& factor : dim) {
      if (factor.axis != 'h') continue;
      if (factor.place % result.repeats_ != 0) return std::nullopt;
      factor.place /= result.repeats_;
    }
  }
  return result;
}

std::optional<std::string> HeadAxes::Order() const {
  constexpr std::string_view kAxes = "bhsd";
  std::vector<Factor> merged;
  for (const Factor& factor : Flat()) {
    if (!merged.empty() && merged.back().axis == factor.axis &&
        merged.back().place == factor.place * factor.size) {
      merged.back().place = factor.place;
    } else {
      merged.push_back(factor);
    }
  }
  std::string order;
  for (const Factor& factor : merged) {
    if (factor.place != 1 || order.find(factor.axis) != order.npos) return std::nullopt;
    order += factor.axis;
  }
  std::string missing;
  for (const char axis : kAxes) {
    if (order.find(axis) == order.npos) missing += axis;
  }
  const bool has_row = missing.empty() || missing.back() != 'd';
  if (has_row && order.back() != 'd') return std::nullopt;
  if (has_row) return missing + order;
  missing.pop_back();
  return missing + order + 'd';
}

namespace {

// Adding a number below this hides a key: the score is lost in rounding.
constexpr double kHidingScore = -1e30;

const ModelOperation* ProducerOf(const Model::Impl& model, ValueIndex value) {
  if (value == kNoValue || model.value(value).source != ModelValue::Source::kOperation) {
    return nullptr;
  }
  return &model.operations[static_cast<size_t>(model.value(value).producer)];
}

bool IsOp(const ModelOperation* operation, std::string_view type) {
  return operation != nullptr && operation->is_standard() && operation->type() == type;
}

class PatternFinder {
 public:
  PatternFinder(const Model::Impl& model, const ModelFacts& facts, const ValueReaders& readers,
                size_t softmax, bool takes_dropout)
      : model_(model), facts_(facts), readers_(readers), takes_dropout_(takes_dropout) {
    found_.softmax = softmax;
  }

  std::optional<FoundAttention> Find() {
    const ModelOperation& softmax = model_.operations[found_.softmax];
    if (!IsOverLastAxis(softmax) || !FindOutput(softmax.outputs[0])) return std::nullopt;
    std::optional<FoundAttention> found = FindScores(softmax.inputs[0], found_);
    if (!found || !AreProducts(*found)) return std::nullopt;
    return found;
  }

 private:
  bool IsOverLastAxis(const ModelOperation& softmax) const {
    const OpSpec& spec = facts_.operations[found_.softmax].spec;
    const auto rank = static_cast<int64_t>(model_.value(softmax.inputs[0]).dims.size());
    const int64_t axis = spec.Int("axis", spec.opset >= 13 ? -1 : 1);
    return rank >= 3 && (axis == -1 || axis == rank - 1);
  }

  size_t IndexOf(const ModelOperation& operation) const {
    return static_cast<size_t>(&operation - model_.operations.data());
  }

  // ---- From the Softmax down ------------------------------------------------------------------

  // Where(IsNaN(p), 0, p) guards the rows of queries without keys, which FusedAttention sets to
  // zero.
  ValueIndex AfterGuard(ValueIndex p, const std::vector<size_t>& readers) const {
    if (readers.size() != 2) return kNoValue;
    const ModelOperation* guard = &model_.operations[readers[0]];
    const ModelOperation* choice = &model_.operations[readers[1]];
    if (IsOp(choice, "IsNaN")) std::swap(guard, choice);
    if (!IsOp(guard, "IsNaN") || !IsOp(choice, "Where")) return kNoValue;
    const bool is_guard = choice->input(0) == guard->output(0) && choice->input(2) == p &&
                          KnownNumber(model_, choice->input(1)) == 0;
    if (!is_guard || readers_.OnlyOf(guard->outputs[0]) != IndexOf(*choice)) return kNoValue;
    return choice->outputs[0];
  }

  bool FindOutput(ValueIndex p) {
    for (;;) {
      if (readers_.IsOutput(p)) return false;
      const std::vector<size_t> readers = readers_.Of(p);
      const ValueIndex guarded = AfterGuard(p, readers);
      if (guarded == kNoValue) {
        if (readers.size() != 1) return false;
        const ModelOperation& reader = model_.operations[readers[0]];
        if (IsOp(&reader, "MatMul") && reader.input(0) == p && reader.input(1) != p) {
          found_.output = readers[0];
          found_.result = reader.outputs[0];
          return true;
        }
        const bool is_view = facts_.operations[readers[0]].is_view && KeepsDims(reader);
        if (!is_view && !TakeDropout(reader)) return false;
      }
      p = guarded == kNoValue ? model_.operations[readers[0]].outputs[0] : guarded;
    }
  }

  bool TakeDropout(const ModelOperation& operation) {
    if (!takes_dropout_ || !IsOp(&operation, "Dropout") || found_.dropout != 0) return false;
    found_.dropout = KnownNumber(model_, operation.input(1))
                         .value_or(FloatAttribute(*operation.node, "ratio", 0.5));
    return true;
  }

  bool KeepsDims(const ModelOperation& operation) const {
    return model_.value(operation.inputs[0]).dims == model_.value(operation.outputs[0]).dims;
  }

  // ---- From the Softmax up --------------------------------------------------------------------

  // Returns the attention with these scores, extending what was found below them.
  std::optional<FoundAttention> FindScores(ValueIndex scores, FoundAttention found) const {
    const ModelOperation* producer = ProducerOf(model_, scores);
    if (producer == nullptr || !readers_.OnlyOf(scores)) return std::nullopt;
    if (IsOp(producer, "MatMul")) {
      found.scores = IndexOf(*producer);
      return found;
    }
    if (facts_.operations[IndexOf(*producer)].is_view && KeepsRows(*producer)) {
      return FindScores(producer->inputs[0], std::move(found));
    }
    if (const auto factor = FactorOf(model_, facts_, *producer)) {
      found.scale *= factor->factor;
      return FindScores(producer->inputs[factor->position], std::move(found));
    }
    if (found.scale != 1 || found.terms.size() == 2) return std::nullopt;
    if (IsOp(producer, "Add")) return FindBelowAdd(*producer, found);
    if (IsOp(producer, "Where")) return FindBelowWhere(*producer, std::move(found));
    return std::nullopt;
  }

  bool KeepsRows(const ModelOperation& view) const {
    const Dims& from = model_.value(view.inputs[0]).dims;
    const Dims& to = model_.value(view.outputs[0]).dims;
    return from.size() >= 3 && to.size() >= 3 && from.back() == to.back() &&
           from[from.size() - 2] == to[to.size() - 2] && from[from.size() - 3] == to[to.size() - 3];
  }

  std::optional<FoundAttention> FindBelowAdd(const ModelOperation& add,
                                             const FoundAttention& found) const {
    const Dims& dims = model_.value(add.outputs[0]).dims;
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ValueIndex scores = add.input(position);
      const ValueIndex term = add.input(1 - position);
      if (scores == term || model_.value(scores).dims != dims || !CanBeTerm(add, 1 - position)) {
        continue;
      }
      FoundAttention with = found;
      with.terms.push_back({term, dims, false, false});
      if (auto whole = FindScores(scores, std::move(with))) return whole;
    }
    return std::nullopt;
  }

  // A vector that Add treats as a weight would stop being one.
  bool CanBeTerm(const ModelOperation& add, size_t position) const {
    const OperationFacts& own = facts_.operations[IndexOf(add)];
    const ValueIndex term = add.inputs[position];
    const bool is_trained = position < own.reads_trained.size() && own.reads_trained[position];
    return !is_trained || facts_.value(term).may_be_trained;
  }

  std::optional<FoundAttention> FindBelowWhere(const ModelOperation& where,
                                               FoundAttention found) const {
    const auto shown = KnownNumber(model_, where.input(2));
    const auto hidden = KnownNumber(model_, where.input(1));
    const bool has_other_fill = std::any_of(found.terms.begin(), found.terms.end(),
                                            [](const FoundTerm& term) { return term.is_bool; });
    if (shown.has_value() == hidden.has_value() || has_other_fill) return std::nullopt;
    found.fill = shown.value_or(hidden.value_or(0));
    const ValueIndex scores = where.input(hidden ? 2 : 1);
    const Dims& dims = model_.value(where.outputs[0]).dims;
    if (model_.value(scores).dims != dims) return std::nullopt;
    found.terms.push_back({where.input(0), dims, hidden.has_value(), true});
    return FindScores(scores, std::move(found));
  }

  bool AreProducts(const FoundAttention& found) const {
    const ModelOperation& scores = model_.operations[found.scores];
    const ModelOperation& output = model_.operations[found.output];
    const Dims& q = model_.value(scores.inputs[0]).dims;
    const Dims& k = model_.value(scores.inputs[1]).dims;
    const Dims& p = model_.value(output.inputs[0]).dims;
    const Dims& v = model_.value(output.inputs[1]).dims;
    if (q.size() < 3 || k.size() != q.size() || v.size() != q.size()) return false;
    const auto lead = [](const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); };
    return lead(q) == lead(k) && lead(q) == lead(v) && lead(q) == lead(p);
  }

  const Model::Impl& model_;
  const ModelFacts& facts_;
  const ValueReaders& readers_;
  const bool takes_dropout_;
  FoundAttention found_;
};

}  // namespace

ValueReaders::ValueReaders(const Model::Impl& model, const ModelFacts& facts)
    : readers_(model.values.size()),
      has_effect_(model.operations.size(), false),
      is_output_(model.values.size(), false) {
  for (const ValueIndex output : model.graph_outputs)
    is_output_[static_cast<size_t>(output)] = true;
  for (size_t i = model.operations.size(); i-- > 0;) {
    const ModelOperation& operation = model.operations[i];
    const OperationFacts& own = facts.operations[i];
    if (!own.is_batch || !own.is_live) continue;
    has_effect_[i] =
        !own.is_view ||
        std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](ValueIndex output) {
          return output != kNoValue && (IsOutput(output) || !Of(output).empty());
        });
    for (size_t k = 0; k < operation.inputs.size(); ++k) {
      if (operation.inputs[k] == kNoValue || !ReadsContents(*own.rule, k)) continue;
      std::vector<size_t>& readers = readers_[static_cast<size_t>(operation.inputs[k])];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
    }
  }
}

std::vector<size_t> ValueReaders::Of(ValueIndex value) const {
  std::vector<size_t> readers;
  for (const size_t reader : readers_[static_cast<size_t>(value)]) {
    if (has_effect_[reader]) readers.push_back(reader);
  }
  return readers;
}

std::optional<size_t> ValueReaders::OnlyOf(ValueIndex value) const {
  const std::vector<size_t> readers = Of(value);
  if (IsOutput(value) || readers.size() != 1) return std::nullopt;
  return readers[0];
}

std::optional<FoundAttention> FindAttentionAround(const Model::Impl& model, const ModelFacts& facts,
                                                  const ValueReaders& readers, size_t softmax,
                                                  bool takes_dropout) {
  return PatternFinder(model, facts, readers, softmax, takes_dropout).Find();
}

std::optional<double> KnownNumber(const Model::Impl& model, ValueIndex value) {
  if (value == kNoValue) return std::nullopt;
  const ConstantValue* constant = model.value(value).constant.get();
  if (constant == nullptr || constant->size() != 1) return std::nullopt;
  return constant->is_float() ? constant->reals[0] : static_cast<double>(constant->ints[0]);
}

std::optional<KnownFactor> FactorOf(const Model::Impl& model, const ModelFacts& facts,
                                    const ModelOperation& operation) {
  const bool is_mul = IsOp(&operation, "Mul");
  if (!is_mul && !IsOp(&operation, "Div")) return std::nullopt;
  const auto index = static_cast<size_t>(&operation - model.operations.data());
  const auto& trained = facts.operations[index].reads_trained;
  for (const size_t position : {size_t{0}, size_t{1}}) {
    const auto number = KnownNumber(model, operation.input(1 - position));
    if (!number || !std::isfinite(*number) || *number == 0) continue;
    if (1 - position < trained.size() && trained[1 - position]) continue;
    const Dims& from = model.value(operation.input(position)).dims;
    if (from != model.value(operation.outputs[0]).dims || (!is_mul && position == 1)) continue;
    return KnownFactor{position, is_mul ? *number : 1 / *number};
  }
  return std::nullopt;
}

bool IsTrainedTerm(const ModelFacts& facts, ValueIndex value) {
  const ValueFacts& own = facts.value(value);
  return own.requires_grad || (!own.is_batch && own.may_be_trained);
}

namespace {

// If the term is Where(mask, 0, -infinity) or Where(mask, -infinity, 0), replaces it by the mask.
// The two numbers are not parameters, even if an exporter moved them to initializers.
bool TakeMask(const Model::Impl& model, const ModelOperation* producer, FoundTerm& term,
              double* fill) {
  if (term.is_bool || !IsOp(producer, "Where")) return false;
  const auto shown = KnownNumber(model, producer->input(1));
  const auto hidden = KnownNumber(model, producer->input(2));
  if (!shown || !hidden) return false;
  const bool hides = *hidden == 0;
  const double other = hides ? *shown : *hidden;
  if ((hides ? *hidden : *shown) != 0 || !(other <= kHidingScore)) return false;
  *fill = other;
  term.value = producer->inputs[0];
  term.hides = hides;
  term.is_bool = true;
  return true;
}

}  // namespace

FoundTerm SimplestTerm(const Model::Impl& model, const ModelFacts& facts, FoundTerm term,
                       double* fill) {
  for (;;) {
    const ModelOperation* producer = ProducerOf(model, term.value);
    if (TakeMask(model, producer, term, fill)) continue;
    if (!IsOp(producer, "Expand") || IsTrainedTerm(facts, term.value)) return term;
    term.value = producer->inputs[0];
  }
}

}  // namespace ckplan
