#include "lib/files/model/pointwise_loss.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/files/model/eager_notes.h"
#include "lib/files/model/origin.h"
#include "lib/problem/ops/elementwise.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan {

namespace {

struct Formula {
  std::string_view function;
  std::vector<ValueIndex> inputs;  // Prediction, target, weight, positive weight.
  std::vector<size_t> operations;
  double threshold = 1;
};

class Matcher {
 public:
  explicit Matcher(const OperationPatterns& patterns) : patterns_(patterns) {}

  std::optional<PointwiseLoss> At(size_t index) const {
    const ModelOperation& last = patterns_.model().operations[index];
    if (last.outputs.empty() || last.outputs[0] == kNoValue) return std::nullopt;
    const bool is_total = IsTotal(last);
    const ValueIndex elements = is_total ? last.input(0) : last.outputs[0];
    std::optional<Formula> loss = FormulaOf(elements);
    if (!loss) return std::nullopt;
    if (is_total) loss->operations.push_back(index);
    if (!IsOneOperation(*loss) || (!is_total && GoesOn(*loss, elements))) return std::nullopt;
    while (loss->inputs.back() == kNoValue) loss->inputs.pop_back();
    onnx::NodeProto node = NodeOfType("PointwiseLoss");
    SetString(node, kFunctionAttribute, loss->function);
    const std::string_view total = last.type() == "ReduceMean" ? "mean" : "sum";
    SetString(node, "reduction", is_total ? total : "none");
    if (loss->threshold != 1) SetFloat(node, kThresholdAttribute, loss->threshold);
    return PointwiseLoss{std::move(node), std::move(loss->inputs),
                         "aten." + std::string(loss->function), std::move(loss->operations)};
  }

 private:
  // True if the only reader is a part of the same loss.
  bool GoesOn(Formula loss, ValueIndex elements) const {
    const auto reader = patterns_.readers().OnlyOf(elements);
    if (!reader) return false;
    const ModelOperation& next = patterns_.model().operations[*reader];
    loss.operations.push_back(*reader);
    return (IsTotal(next) || WeightedLossOf(next.outputs[0])) && IsOneOperation(loss);
  }

  bool IsTotal(const ModelOperation& operation) const {
    if (operation.type() != "ReduceMean" && operation.type() != "ReduceSum") return false;
    // The mean of losses in the same line: loss(x, y, reduction="none").mean()
    for (const char* none : {"\"none\"", "'none'"}) {
      if (TraceHas(patterns_.model(), operation, none)) return false;
    }
    return ElementCount(patterns_.DimsOf(operation.outputs[0])) == 1;
  }

  // mse_loss is exported as one operation, other losses as several.
  bool IsOneOperation(const Formula& loss) const {
    const auto origin = CommonOrigin(patterns_.model(), loss.operations);
    if (origin && origin->is_known()) return origin->Is("aten." + std::string(loss.function));
    return loss.function != "mse_loss" && !HasEagerNotes(patterns_.model()) &&
           AreFromOneLine(patterns_.model(), loss.operations);
  }

  std::optional<Formula> FormulaOf(ValueIndex value) const {
    std::optional<Formula> loss;
    const auto matches = {&Matcher::DistanceLossOf,    &Matcher::SquareLossOf,
                          &Matcher::ProbabilityLossOf, &Matcher::ScoreLossOf,
                          &Matcher::MarginLossOf,      &Matcher::WeightedLossOf};
    for (const auto match : matches) {
      if (!loss) loss = (this->*match)(value);
    }
    if (!loss) return std::nullopt;
    const ValueIndex target = loss->inputs[1];
    const bool is_symmetric = loss->function == "mse_loss" || loss->function == "huber_loss" ||
                              loss->function == "smooth_l1_loss";
    const ValueFacts& facts = patterns_.facts().value(target);
    const bool may_be_trained = is_symmetric && facts.is_batch;
    if (!may_be_trained && IsTrainedTerm(patterns_.facts(), target)) return std::nullopt;
    for (const ValueIndex input : {loss->inputs[0], target}) {
      if (input == kNoValue || patterns_.DimsOf(input) != patterns_.DimsOf(value))
        return std::nullopt;
    }
    std::sort(loss->operations.begin(), loss->operations.end());
    return loss;
  }

  // Adds the producer of a value to the loss if it has this type.
  const ModelOperation* Take(ValueIndex value, std::string_view type, Formula& loss) const {
    const ModelOperation* const producer = patterns_.ProducerOfType(value, type);
    if (producer != nullptr) loss.operations.push_back(patterns_.IndexOf(*producer));
    return producer;
  }

  std::optional<Formula> DistanceLossOf(ValueIndex value) const {
    Formula loss;
    const ModelOperation* const choice = Take(value, "Where", loss);
    if (choice == nullptr) return std::nullopt;
    const ModelOperation* const less = Take(choice->input(0), "Less", loss);
    if (less == nullptr) return std::nullopt;
    const ValueIndex z = less->input(0);
    const auto threshold = KnownNumber(patterns_.model(), less->input(1));
    const ModelOperation* const distance = Take(z, "Abs", loss);
    if (distance == nullptr || !threshold) return std::nullopt;
    const ModelOperation* const difference = Take(distance->input(0), "Sub", loss);
    if (difference == nullptr) return std::nullopt;
    loss.inputs = difference->inputs;
    loss.threshold = *threshold;
    Formula huber = loss;
    if (TakeHuber(*choice, z, huber)) return huber;
    if (TakeSmoothL1(*choice, z, loss)) return loss;
    return std::nullopt;
  }

  bool TakeHuber(const ModelOperation& choice, ValueIndex z, Formula& loss) const {
    loss.function = "huber_loss";
    const ModelOperation* const square = Take(choice.input(1), "Mul", loss);
    if (square == nullptr || square->input(1) != z) return false;
    const ModelOperation* const half = Take(square->input(0), "Mul", loss);
    if (half == nullptr || half->input(0) != z) return false;
    // Optimizers drop the product with 1.
    const ModelOperation* const line = Take(choice.input(2), "Mul", loss);
    const double slope = line == nullptr ? 1 : loss.threshold;
    return patterns_.IsNumber(half->input(1), 0.5) && slope == loss.threshold &&
           (line == nullptr || patterns_.IsNumber(line->input(1), slope)) &&
           TakeShifted(line == nullptr ? choice.input(2) : line->input(0), z, loss);
  }

  bool TakeSmoothL1(const ModelOperation& choice, ValueIndex z, Formula& loss) const {
    loss.function = "smooth_l1_loss";
    const ModelOperation* const quotient = Take(choice.input(1), "Div", loss);
    const double divisor = quotient == nullptr ? 1 : loss.threshold;
    if (divisor != loss.threshold) return false;
    if (quotient != nullptr && !patterns_.IsNumber(quotient->input(1), divisor)) return false;
    const ModelOperation* const half =
        Take(quotient == nullptr ? choice.input(1) : quotient->input(0), "Mul", loss);
    if (half == nullptr || !patterns_.IsNumber(half->input(1), 0.5)) return false;
    const ModelOperation* const power = Take(half->input(0), "Pow", loss);
    return power != nullptr && power->input(0) == z && patterns_.IsNumber(power->input(1), 2) &&
           TakeShifted(choice.input(2), z, loss);
  }

  // z - d / 2
  bool TakeShifted(ValueIndex value, ValueIndex z, Formula& loss) const {
    const ModelOperation* const shifted = Take(value, "Sub", loss);
    return shifted != nullptr && shifted->input(0) == z &&
           patterns_.IsNumber(shifted->input(1), loss.threshold / 2);
  }

  // Mul(Sub(x, t), Sub(x, t))
  std::optional<Formula> SquareLossOf(ValueIndex value) const {
    Formula loss;
    loss.function = "mse_loss";
    const ModelOperation* const square = Take(value, "Mul", loss);
    if (square == nullptr) return std::nullopt;
    const ModelOperation* const first = Take(square->input(0), "Sub", loss);
    const ModelOperation* const second = Take(square->input(1), "Sub", loss);
    if (first == nullptr || second == nullptr || first->inputs != second->inputs) {
      return std::nullopt;
    }
    loss.inputs = first->inputs;
    return loss;
  }

  // Returns the position of the factor that is the result of this type, and that `fits` accepts.
  template <typename Fits>
  std::optional<size_t> FactorOfType(const ModelOperation& product, std::string_view type,
                                     const Fits& fits) const {
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ModelOperation* const factor = patterns_.ProducerOfType(product.input(position), type);
      if (factor != nullptr && fits(*factor)) return position;
    }
    return std::nullopt;
  }

  // (t - 1) Max(Log(1 - x), -100) - t Max(Log(x), -100)
  std::optional<Formula> ProbabilityLossOf(ValueIndex value) const {
    Formula loss;
    loss.function = "binary_cross_entropy";
    const ModelOperation* const difference = Take(value, "Sub", loss);
    if (difference == nullptr) return std::nullopt;
    const ModelOperation* const negative = Take(difference->input(0), "Mul", loss);
    const ModelOperation* const positive = Take(difference->input(1), "Mul", loss);
    if (negative == nullptr || positive == nullptr) return std::nullopt;
    const auto any = [](const ModelOperation&) { return true; };
    const auto first = FactorOfType(*negative, "Max", any);
    const auto second = FactorOfType(*positive, "Max", any);
    if (!first || !second) return std::nullopt;
    const ModelOperation* const of_rest = Take(negative->input(*first), "Max", loss);
    const ModelOperation* const of_x = Take(positive->input(*second), "Max", loss);
    for (const ModelOperation* const clamped : {of_rest, of_x}) {
      constexpr double kLeastLog = -100;
      if (clamped->inputs.size() != 2 || !patterns_.IsNumber(clamped->input(1), kLeastLog))
        return std::nullopt;
    }
    const ModelOperation* const log = Take(of_x->input(0), "Log", loss);
    const ModelOperation* const rest = Take(of_rest->input(0), "Log", loss);
    const ModelOperation* const less_one = Take(negative->input(1 - *first), "Sub", loss);
    if (log == nullptr || rest == nullptr || less_one == nullptr) return std::nullopt;
    const ModelOperation* const one_more = Take(rest->input(0), "Add", loss);
    if (one_more == nullptr) return std::nullopt;
    const ModelOperation* const negated = Take(one_more->input(0), "Neg", loss);
    const ValueIndex target = positive->input(1 - *second);
    if (negated == nullptr || negated->input(0) != log->input(0)) return std::nullopt;
    if (less_one->input(0) != target || !patterns_.IsNumber(less_one->input(1), 1))
      return std::nullopt;
    if (!patterns_.IsNumber(one_more->input(1), 1)) return std::nullopt;
    loss.inputs = {log->input(0), target};
    return loss;
  }

  // (1 - t) x - LogSigmoid(x), or minus (1 + (p - 1) t) LogSigmoid(x) with a positive weight p
  std::optional<Formula> ScoreLossOf(ValueIndex value) const {
    Formula loss;
    loss.function = "binary_cross_entropy_with_logits";
    const ModelOperation* const difference = Take(value, "Sub", loss);
    if (difference == nullptr) return std::nullopt;
    const ModelOperation* const negative = Take(difference->input(0), "Mul", loss);
    if (negative == nullptr) return std::nullopt;
    const auto from_one = FactorOfType(*negative, "Sub", [this](const ModelOperation& factor) {
      return patterns_.IsNumber(factor.input(0), 1);
    });
    if (!from_one) return std::nullopt;
    const ModelOperation* const rest = Take(negative->input(*from_one), "Sub", loss);
    const ValueIndex x = negative->input(1 - *from_one);
    const ValueIndex target = rest->input(1);
    loss.inputs = {x, target};
    if (TakeLogSigmoid(difference->input(1), x, loss)) return loss;

    const ModelOperation* const weighted = Take(difference->input(1), "Mul", loss);
    if (weighted == nullptr) return std::nullopt;
    const auto log = FactorOfType(*weighted, "Softplus",
                                  [x](const ModelOperation& one) { return one.input(0) == x; });
    if (!log || !TakeLogSigmoid(weighted->input(*log), x, loss)) return std::nullopt;
    const ModelOperation* const sum = Take(weighted->input(1 - *log), "Add", loss);
    if (sum == nullptr || !patterns_.IsNumber(sum->input(1), 1)) return std::nullopt;
    const ModelOperation* const product = Take(sum->input(0), "Mul", loss);
    if (product == nullptr || product->input(1) != target) return std::nullopt;
    const ModelOperation* const less_one = patterns_.ProducerOfType(product->input(0), "Sub");
    if (less_one == nullptr || !patterns_.IsNumber(less_one->input(1), 1)) return std::nullopt;
    if (!Repeats(less_one->input(0), patterns_.DimsOf(x))) return std::nullopt;
    loss.inputs = {x, target, kNoValue, less_one->input(0)};
    return loss;
  }

  // RestoreLogSigmoid has made it a Softplus.
  bool TakeLogSigmoid(ValueIndex value, ValueIndex x, Formula& loss) const {
    const ModelOperation* const log = patterns_.ProducerOfType(value, "Softplus");
    if (log == nullptr || log->input(0) != x) return false;
    if (FloatAttribute(*log->node, std::string(kFactorAttribute), 1) != -1) return false;
    loss.operations.push_back(patterns_.IndexOf(*log));
    return true;
  }

  // Log(1 + Exp(Mul(Neg(x), t)))
  std::optional<Formula> MarginLossOf(ValueIndex value) const {
    Formula loss;
    loss.function = "soft_margin_loss";
    const ModelOperation* const log = Take(value, "Log", loss);
    if (log == nullptr) return std::nullopt;
    const ModelOperation* const sum = Take(log->input(0), "Add", loss);
    if (sum == nullptr || !patterns_.IsNumber(sum->input(1), 1)) return std::nullopt;
    const ModelOperation* const power = Take(sum->input(0), "Exp", loss);
    if (power == nullptr) return std::nullopt;
    const ModelOperation* const product = Take(power->input(0), "Mul", loss);
    if (product == nullptr) return std::nullopt;
    const ModelOperation* const negated = Take(product->input(0), "Neg", loss);
    if (negated == nullptr) return std::nullopt;
    loss.inputs = {negated->input(0), product->input(1)};
    return loss;
  }

  // Mul(loss, weight) of a binary cross entropy.
  std::optional<Formula> WeightedLossOf(ValueIndex value) const {
    const ModelOperation* const product = patterns_.ProducerOfType(value, "Mul");
    if (product == nullptr) return std::nullopt;
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ValueIndex weight = product->input(1 - position);
      std::optional<Formula> loss = ProbabilityLossOf(product->input(position));
      if (!loss) loss = ScoreLossOf(product->input(position));
      if (!loss || !Repeats(weight, patterns_.DimsOf(value))) continue;
      loss->operations.push_back(patterns_.IndexOf(*product));
      loss->inputs.resize(4, kNoValue);
      loss->inputs[2] = weight;
      return loss;
    }
    return std::nullopt;
  }

  // True if the value has the last of these dimensions, and isn't trained.
  bool Repeats(ValueIndex value, const Dims& dims) const {
    if (value == kNoValue || IsTrainedTerm(patterns_.facts(), value)) return false;
    const Dims& own = patterns_.DimsOf(value);
    return own.size() <= dims.size() && std::equal(own.rbegin(), own.rend(), dims.rbegin());
  }

  const OperationPatterns& patterns_;
};

}  // namespace

std::optional<PointwiseLoss> PointwiseLossAt(const OperationPatterns& patterns, size_t index) {
  return Matcher(patterns).At(index);
}

}  // namespace ckplan
