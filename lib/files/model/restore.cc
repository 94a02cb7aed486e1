#include "lib/files/model/restore.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/files/model/attention_pattern.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/operation_edits.h"
#include "lib/files/model/operation_patterns.h"
#include "lib/files/model/origin.h"
#include "lib/files/model/pointwise_loss.h"
#include "lib/problem/ops/elementwise.h"
#include "lib/problem/ops/reduce.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan {

namespace {

constexpr int64_t kOpsetOfChannelScale = 21;  // GroupNormalization with a scale for each channel.
constexpr size_t kMaxFactors = 4;

class Restorer : private OperationPatterns {
 public:
  Restorer(Model::Impl& model, Autograd autograd)
      : OperationPatterns(model),
        model_(model),
        autograd_(autograd),
        facts_(facts()),
        readers_(readers()),
        made_(model) {}

  void RestoreAll() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const OperationFacts& own = facts_.operations[i];
      const ModelOperation& operation = model_.operations[i];
      if (!operation.is_standard() || !own.is_live || !own.is_batch) continue;
      const std::string& type = operation.type();
      if (RestoreLoss(i)) continue;
      if (type == "Mul") {
        static_cast<void>(RestoreGated(i) || RestoreGelu(i) || RestoreElu(i) || RestoreMasked(i) ||
                          RestoreSquare(i));
      } else if (type == "Div") {
        static_cast<void>(RestoreGelu(i) || RestoreVariance(i));
      } else if (type == "ReduceMean") {
        RestoreVariance(i);
      } else if (type == "Log") {
        RestoreLogSigmoid(i);
      } else if (type == "Reciprocal") {
        RestoreRsqrt(i);
      } else if (type == "Where") {
        static_cast<void>(RestoreSoftplus(i) || DropGuard(i));
      } else if (type == "Add") {
        RestoreGroupNorm(i);
      } else if (type == "Max" || type == "Min") {
        RestoreClip(i);
      } else if (type == "ReduceMax" || type == "ReduceMin") {
        RestoreChoice(i);
      } else if (type == "SoftmaxCrossEntropyLoss") {
        SplitLoss(i);
      }
    }
    for (size_t i = 0; i < model_.operations.size(); ++i) ReadBeforeExpand(i);
    made_.Insert();
  }

 private:
  // ---- Replacing ------------------------------------------------------------------------------

  // Replaces the last of the operations by `node`, which stands for all of them, unless the file
  // says that they were several operations.
  bool Replace(const std::vector<size_t>& operations, onnx::NodeProto node,
               std::vector<ValueIndex> inputs, int64_t opset = 0) {
    const std::optional<Origin> origin = CommonOrigin(model_, operations);
    if (!origin) return false;
    ModelOperation& target = model_.operations[operations.back()];
    RestoredOperation restored{target.name, node.op_type(), origin->target, {}};
    for (const size_t operation : operations) {
      restored.replaced.push_back(model_.operations[operation].type());
    }
    model_.restored.push_back(std::move(restored));
    made_.Replace(target, std::move(node), std::move(inputs), opset);
    return true;
  }

  // ---- Activations ----------------------------------------------------------------------------

  // Mul(x, gate(x))
  bool RestoreGated(size_t index) {
    const ModelOperation& product = model_.operations[index];
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ValueIndex x = product.input(1 - position);
      const ValueIndex gate = product.input(position);
      if (const auto* sigmoid = OwnProducer(gate, "Sigmoid", index)) {
        if (sigmoid->input(0) != x) continue;
        return Replace({IndexOf(*sigmoid), index}, NodeOfType("Swish"), {x});
      }
      if (const auto* hard = OwnProducer(gate, "HardSigmoid", index)) {
        const bool is_sixth = IsNear(FloatAttribute(*hard->node, "alpha", 0.2), 1.0 / 6) &&
                              IsNear(FloatAttribute(*hard->node, "beta", 0.5), 0.5);
        if (hard->input(0) != x || !is_sixth) continue;
        return Replace({IndexOf(*hard), index}, NodeOfType("HardSwish"), {x});
      }
      if (const auto* tanh = OwnProducer(gate, "Tanh", index)) {
        const auto* softplus = OwnProducer(tanh->input(0), "Softplus", IndexOf(*tanh));
        if (softplus == nullptr || softplus->input(0) != x) continue;
        return Replace({IndexOf(*softplus), IndexOf(*tanh), index}, NodeOfType("Mish"), {x});
      }
    }
    return false;
  }

  struct Product {
    std::vector<ValueIndex> factors;
    double number = 1;  // The product of all known numbers.
    std::vector<size_t> operations;
  };

  // Collects the factors of a product, including those of products and quotients that only it
  // reads.
  void Collect(size_t index, Product& product) const {
    const ModelOperation& operation = model_.operations[index];
    if (const auto factor = FactorOf(model_, facts_, operation)) {
      product.number *= factor->factor;
      CollectFrom(operation.inputs[factor->position], index, product);
    } else if (operation.type() == "Mul") {
      for (const ValueIndex input : operation.inputs) CollectFrom(input, index, product);
    } else {
      product.factors.push_back(operation.outputs[0]);
      return;
    }
    product.operations.push_back(index);
  }

  void CollectFrom(ValueIndex value, size_t reader, Product& product) const {
    const ModelOperation* producer = OwnProducer(value, "Mul", reader);
    if (producer == nullptr) producer = OwnProducer(value, "Div", reader);
    if (producer == nullptr || product.operations.size() + product.factors.size() > kMaxFactors) {
      product.factors.push_back(value);
    } else {
      Collect(IndexOf(*producer), product);
    }
  }

  // x · (1 + Erf(x / √2)) / 2
  bool RestoreGelu(size_t index) {
    Product product;
    Collect(index, product);
    if (product.factors.size() != 2 || !IsNear(product.number, 0.5)) return false;
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ValueIndex x = product.factors[1 - position];
      const ModelOperation* const add = ProducerOfType(product.factors[position], "Add");
      if (add == nullptr || !readers_.OnlyOf(add->outputs[0])) continue;
      const ModelOperation* erf = nullptr;
      for (const size_t term : {size_t{0}, size_t{1}}) {
        if (KnownNumber(model_, add->input(1 - term)) == 1.0) {
          erf = OwnProducer(add->input(term), "Erf", IndexOf(*add));
        }
      }
      if (erf == nullptr) continue;
      const auto scale = ScaledFrom(erf->inputs[0], x, IndexOf(*erf));
      if (!scale || !IsNear(scale->number, std::sqrt(0.5))) continue;
      std::vector<size_t> operations = scale->operations;
      operations.push_back(IndexOf(*erf));
      operations.push_back(IndexOf(*add));
      operations.insert(operations.end(), product.operations.begin(), product.operations.end());
      return Replace(operations, NodeOfType("Gelu"), {x});
    }
    return false;
  }

  struct Scaled {
    double number = 1;
    std::vector<size_t> operations;  // In the order in which they run.
  };

  // Returns the factor that turns `from` into `value`, with its operations; nullopt if `value` is
  // computed differently.
  std::optional<Scaled> ScaledFrom(ValueIndex value, ValueIndex from, size_t reader) const {
    Scaled scaled;
    while (value != from) {
      const ModelOperation* producer = ProducerOfType(value, "Mul");
      if (producer == nullptr) producer = ProducerOfType(value, "Div");
      if (producer == nullptr || scaled.operations.size() == kMaxFactors) return std::nullopt;
      const auto factor = FactorOf(model_, facts_, *producer);
      const std::vector<size_t> readers = readers_.Of(value);
      const bool is_own = std::find(readers.begin(), readers.end(), reader) != readers.end();
      if (!factor || !is_own) return std::nullopt;
      scaled.number *= factor->factor;
      scaled.operations.insert(scaled.operations.begin(), IndexOf(*producer));
      reader = IndexOf(*producer);
      value = producer->inputs[factor->position];
    }
    return scaled;
  }

  // Where(Greater(b x, t), x, Softplus(b x) / b).
  bool RestoreSoftplus(size_t index) {
    const ModelOperation& choice = model_.operations[index];
    const ModelOperation* const above = OwnProducer(choice.input(0), "Greater", index);
    const ValueIndex x = choice.input(1);
    if (above == nullptr || x == kNoValue || !KnownNumber(model_, above->input(1))) return false;
    Product quotient;
    CollectFrom(choice.input(2), index, quotient);
    if (quotient.factors.size() != 1) return false;
    const ModelOperation* const softplus = ProducerOfType(quotient.factors[0], "Softplus");
    if (softplus == nullptr || !readers_.OnlyOf(softplus->outputs[0])) return false;
    const auto scale = ScaledFrom(softplus->inputs[0], x, IndexOf(*softplus));
    if (!scale || !IsNear(scale->number * quotient.number, 1)) return false;
    if (above->input(0) != x && above->input(0) != softplus->inputs[0]) return false;
    std::vector<size_t> operations = scale->operations;
    operations.push_back(IndexOf(*softplus));
    operations.insert(operations.end(), quotient.operations.begin(), quotient.operations.end());
    operations.push_back(IndexOf(*above));
    operations.push_back(index);
    onnx::NodeProto node = NodeOfType("Softplus");
    if (!IsNear(scale->number, 1)) SetFloat(node, kFactorAttribute, scale->number);
    return Replace(operations, std::move(node), {x});
  }

  // Mul(Elu(Mul(x, 1)), 1): exporters write these scales for a plain ELU.
  bool RestoreElu(size_t index) {
    Product product;
    Collect(index, product);
    if (product.factors.size() != 1 || !IsNear(product.number, 1)) return false;
    const ModelOperation* const elu = ProducerOfType(product.factors[0], "Elu");
    if (elu == nullptr || !readers_.OnlyOf(elu->outputs[0])) return false;
    Product inner;
    CollectFrom(elu->input(0), IndexOf(*elu), inner);
    if (inner.factors.size() != 1 || !IsNear(inner.number, 1)) return false;
    std::vector<size_t> operations = inner.operations;
    operations.push_back(IndexOf(*elu));
    operations.insert(operations.end(), product.operations.begin(), product.operations.end());
    onnx::NodeProto node = NodeOfType("Elu");
    *node.mutable_attribute() = elu->node->attribute();
    return Replace(operations, std::move(node), {inner.factors[0]});
  }

  // Min(Max(x, low), high), or one of the two, is PyTorch's exported clamp.
  bool RestoreClip(size_t index) {
    const ModelOperation& last = model_.operations[index];
    const Origin origin = OriginOf(model_, last);
    if (last.inputs.size() != 2 || !origin.target.starts_with("aten.clamp")) return false;
    if (!IsScalar(last.inputs[1])) return false;
    const auto reader = readers_.OnlyOf(last.outputs[0]);
    if (reader && OriginOf(model_, model_.operations[*reader]).name == origin.name) return false;
    if (last.type() == "Max") {
      return Replace({index}, NodeOfType("Clip"), {last.inputs[0], last.inputs[1]});
    }
    const ModelOperation* const first = OwnProducer(last.inputs[0], "Max", index);
    if (first == nullptr) {
      return Replace({index}, NodeOfType("Clip"), {last.inputs[0], kNoValue, last.inputs[1]});
    }
    if (first->inputs.size() != 2 || !IsScalar(first->inputs[1])) return false;
    return Replace({IndexOf(*first), index}, NodeOfType("Clip"),
                   {first->inputs[0], first->inputs[1], last.inputs[1]});
  }

  bool IsScalar(ValueIndex value) const {
    return value != kNoValue && KnownNumber(model_, value) && DimsOf(value).empty();
  }

  // Log(Sigmoid(x)), which PyTorch computes in one operation.
  bool RestoreLogSigmoid(size_t index) {
    const ModelOperation& log = model_.operations[index];
    const auto* const sigmoid = OwnProducer(log.input(0), "Sigmoid", index);
    if (!IsTorch(autograd_) || sigmoid == nullptr) return false;
    const Origin origin = OriginOf(model_, log);
    const bool is_of_loss = origin.Is("aten.binary_cross_entropy_with_logits");
    if (!origin.Is("aten.log_sigmoid") && !is_of_loss) return false;
    onnx::NodeProto node = NodeOfType("Softplus");
    SetFloat(node, kFactorAttribute, -1);
    return Replace({IndexOf(*sigmoid), index}, std::move(node), {sigmoid->input(0)});
  }

  // Reciprocal(Sqrt(x))
  bool RestoreRsqrt(size_t index) {
    const auto* const root = OwnProducer(model_.operations[index].input(0), "Sqrt", index);
    if (!IsTorch(autograd_) || root == nullptr) return false;
    return Replace({IndexOf(*root), index}, NodeOfType("Rsqrt"), {root->input(0)});
  }

  // True if an operation that reads a part of what came from `origin` came from there, too. Without
  // origins, a factor does.
  bool GoesOn(const Origin& origin, const ModelOperation& reader) const {
    if (origin.is_known()) return OriginOf(model_, reader).name == origin.name;
    return FactorOf(model_, facts_, reader).has_value();
  }

  // ReduceMean(Mul(d, d)) n / (n - correction), where d = Sub(x, ReduceMean(x))
  bool RestoreVariance(size_t index) {
    if (!IsTorch(autograd_)) return false;
    const ModelOperation& last = model_.operations[index];
    const Origin origin = OriginOf(model_, last);
    const auto reader = readers_.OnlyOf(last.outputs[0]);
    if (reader && GoesOn(origin, model_.operations[*reader])) return false;
    Product product;
    Collect(index, product);
    if (product.factors.size() != 1) return false;
    const ModelOperation* const mean = ProducerOfType(product.factors[0], "ReduceMean");
    const auto* const square =
        mean == nullptr ? nullptr : OwnProducer(mean->input(0), "Mul", IndexOf(*mean));
    if (square == nullptr || square->input(0) != square->input(1)) return false;
    const ModelOperation* const difference = ProducerOfType(square->input(0), "Sub");
    if (difference == nullptr) return false;
    const ModelOperation* const center = ProducerOfType(difference->input(1), "ReduceMean");
    const ValueIndex x = difference->input(0);
    if (center == nullptr || center->input(0) != x || AxesOf(*center) != AxesOf(*mean))
      return false;
    if (!AxesOf(*mean) || IntAttribute(*center->node, "keepdims", 1) == 0) return false;
    const auto elements = static_cast<double>(ElementCount(DimsOf(x)).value_or(0));
    const auto results = static_cast<double>(ElementCount(DimsOf(mean->outputs[0])).value_or(0));
    if (results == 0) return false;
    const double size = elements / results;
    const double correction = size - size / product.number;
    constexpr double kErrorOfFloat = 2.4e-7;
    const double whole = std::round(correction);
    if (std::abs(correction - whole) > kErrorOfFloat * size + kTolerance) return false;
    const bool is_of_torch = origin.Is("aten.var") || origin.Is("aten.std") ||
                             origin.Is("aten.var_mean") || origin.Is("aten.std_mean");
    if (whole != 0 && whole != 1 && !is_of_torch) return false;
    std::vector<size_t> operations = {IndexOf(*center), IndexOf(*difference), IndexOf(*square)};
    if (product.operations.empty()) {
      operations.push_back(index);
    } else {
      operations.push_back(IndexOf(*mean));
      operations.insert(operations.end(), product.operations.begin(), product.operations.end());
    }
    onnx::NodeProto node = NodeOfType("ReduceVariance");
    *node.mutable_attribute() = mean->node->attribute();
    SetInt(node, std::string(kCorrectionAttribute), std::llround(whole));
    std::vector<ValueIndex> inputs = mean->inputs;
    inputs[0] = x;
    return Replace(operations, std::move(node), std::move(inputs), mean->opset);
  }

  // ReduceMax or ReduceMin along one axis that was PyTorch's max or min with indices: it saves
  // these instead of its input, and the gradient goes to one element.
  bool RestoreChoice(size_t index) {
    const ModelOperation& reduction = model_.operations[index];
    const Origin origin = OriginOf(model_, reduction);
    const bool is_largest = reduction.type() == "ReduceMax";
    if (origin.target != (is_largest ? "aten.max.dim" : "aten.min.dim")) return false;
    const ValueIndex x = reduction.input(0);
    const ValueIndex axes = reduction.input(1);
    const ConstantValue* known = axes == kNoValue ? nullptr : model_.value(axes).constant.get();
    const auto rank = static_cast<int64_t>(DimsOf(x).size());
    if (known == nullptr || known->ints.size() != 1 || rank == 0) return false;
    const int64_t axis = known->ints[0] < 0 ? known->ints[0] + rank : known->ints[0];
    if (axis < 0 || axis >= rank) return false;

    const std::string name = reduction.name + "/TopK";
    const bool keeps_axis = IntAttribute(*reduction.node, "keepdims", 1) != 0;
    Dims dims = DimsOf(x);
    dims[static_cast<size_t>(axis)] = 1;
    const ValueIndex values = made_.NewValue(name + ":values", x);
    SetType(values, model_.value(x).elem_type, dims);
    const ValueIndex indices = made_.NewValue(name + ":indices", x);
    SetType(indices, onnx::TensorProto::INT64, dims);
    const ValueIndex one =
        ConstantBefore(index, name + ":k", {onnx::TensorProto::INT64, {1}, {1}, {}});
    onnx::NodeProto node = NodeOfType("TopK");
    SetInt(node, "axis", axis);
    SetInt(node, "largest", is_largest ? 1 : 0);
    made_.InsertBefore(index, std::move(node), name, {x, one}, {values, indices}, 0);
    model_.restored.push_back({reduction.name, "TopK", origin.target, {reduction.type()}});
    const std::vector<ValueIndex> inputs =
        keeps_axis ? std::vector<ValueIndex>{values} : std::vector<ValueIndex>{values, axes};
    made_.Replace(model_.operations[index], NodeOfType(keeps_axis ? "Identity" : "Squeeze"), inputs,
                  0);
    return true;
  }

  // ---- Views ------------------------------------------------------------------------------------

  // PyTorch's expand is a view, so the operator saves the unexpanded tensor, which it broadcasts
  // anyway.
  void ReadBeforeExpand(size_t index) {
    ModelOperation& operation = model_.operations[index];
    const std::string& type = operation.type();
    const bool broadcasts = type == "Add" || type == "Sub" || type == "Mul" || type == "Div";
    if (!IsTorch(autograd_) || !operation.is_standard() || !broadcasts) return;
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ModelOperation* const expand = ProducerOfType(operation.input(position), "Expand");
      const ValueIndex other = operation.input(1 - position);
      if (expand == nullptr || other == kNoValue) continue;
      if (DimsOf(other) != DimsOf(operation.outputs[0])) continue;
      operation.inputs[position] = expand->inputs[0];
    }
  }

  // Mul(x, Cast(mask)): PyTorch multiplies by booleans as they are, and saves them. The exporter
  // adds the cast; one that the program makes has another origin.
  bool RestoreMasked(size_t index) {
    const ModelOperation& product = model_.operations[index];
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ModelOperation* const cast = ProducerOfType(product.input(position), "Cast");
      const ValueIndex x = product.input(1 - position);
      if (!IsTorch(autograd_) || cast == nullptr || x == kNoValue) continue;
      const ValueIndex mask = cast->input(0);
      const bool is_mask = TensorTypeOf(model_.value(mask).elem_type) == TensorType::kBool;
      if (!is_mask || DimsOf(x) != DimsOf(product.outputs[0])) continue;
      if (!OriginOf(model_, *cast).Is("prims.convert_element_type")) continue;
      return Replace({index}, NodeOfType("Where"), {mask, x, ZeroBefore(index, x)});
    }
    return false;
  }

  // Inserts a zero of this value's type.
  ValueIndex ZeroBefore(size_t reader, ValueIndex like) {
    return ConstantBefore(reader, model_.operations[reader].name + ":zero",
                          {model_.value(like).elem_type, {}, {}, {0}});
  }

  ValueIndex ConstantBefore(size_t reader, const std::string& name, ConstantValue contents) {
    const ValueIndex made = made_.NewValue(name, model_.operations[reader].outputs[0]);
    SetType(made, contents.elem_type, contents.dims);
    onnx::NodeProto node = NodeOfType("Constant");
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = MakeTensor(contents);
    model_.value(made).constant = std::make_unique<ConstantValue>(std::move(contents));
    made_.InsertBefore(reader, std::move(node), name, {}, {made}, 0);
    return made;
  }

  void SetType(ValueIndex index, int32_t elem_type, const Dims& dims) {
    ModelValue& value = model_.value(index);
    value.elem_type = elem_type;
    value.dims = dims;
    value.bytes = Bytes(TensorBytes(elem_type, dims).value_or(0));
  }

  // The formula of a loss that is one operation for PyTorch.
  bool RestoreLoss(size_t index) {
    if (!IsTorch(autograd_)) return false;
    std::optional<PointwiseLoss> loss = PointwiseLossAt(*this, index);
    if (!loss) return false;
    RestoredOperation restored{
        model_.operations[index].name, loss->node.op_type(), loss->origin, {}};
    for (const size_t operation : loss->operations) {
      const ModelOperation& part = model_.operations[operation];
      restored.replaced.push_back(part.type());
      std::erase_if(model_.restored, [&](const auto& before) { return before.name == part.name; });
    }
    model_.restored.push_back(std::move(restored));
    made_.Replace(model_.operations[index], std::move(loss->node), std::move(loss->inputs), 0);
    return true;
  }

  // Mul(Sub(a, b), Sub(a, b)): exporters write the difference of mse_loss twice.
  bool RestoreSquare(size_t index) {
    ModelOperation& product = model_.operations[index];
    if (!OriginOf(model_, product).Is("aten.mse_loss")) return false;
    const ModelOperation* const first = ProducerOfType(product.input(0), "Sub");
    const ModelOperation* const second = ProducerOfType(product.input(1), "Sub");
    if (first == nullptr || second == nullptr || first == second) return false;
    if (first->inputs != second->inputs) return false;
    product.inputs[1] = product.inputs[0];
    return true;
  }

  // ---- Softmax and losses -----------------------------------------------------------------------

  // Where(IsNaN(p), 0, p) after a Softmax: PyTorch replaces the rows within the same operation, so
  // the restored Softmax does too.
  bool DropGuard(size_t index) {
    const ModelOperation& choice = model_.operations[index];
    const ValueIndex p = choice.input(2);
    const ModelOperation* const guard = OwnProducer(choice.input(0), "IsNaN", index);
    const ModelOperation* const softmax = ProducerOfType(p, "Softmax");
    if (!IsTorch(autograd_) || guard == nullptr || softmax == nullptr) return false;
    if (guard->input(0) != p || KnownNumber(model_, choice.input(1)) != 0.0) return false;
    const size_t guarded = IndexOf(*softmax);
    if (!Replace({guarded, IndexOf(*guard), index}, NodeOfType("Identity"), {p})) return false;
    made_.SetAttribute(model_.operations[guarded], std::string(kGuardAttribute), 1);
    return true;
  }

  // PyTorch computes the logarithms of all probabilities in one operation and picks those of the
  // labels in another, so its backward has two gradients of that size.
  void SplitLoss(size_t index) {
    if (!IsTorch(autograd_)) return;
    ModelOperation& loss = model_.operations[index];
    constexpr int64_t kOpsetOfAxis = 13;  // LogSoftmax along one axis.
    onnx::NodeProto softmax = NodeOfType("LogSoftmax");
    SetInt(softmax, "axis", 1);
    const ValueIndex scores = loss.inputs[0];
    ValueIndex logs = loss.output(1);
    if (logs == kNoValue)
      logs = made_.NewValue(model_.value(loss.outputs[0]).name + ":log", scores);
    made_.InsertBefore(index, std::move(softmax), loss.name + "/LogSoftmax", {scores}, {logs},
                       kOpsetOfAxis);
    onnx::NodeProto picked = *loss.node;
    picked.set_op_type("NegativeLogLikelihoodLoss");
    std::vector<ValueIndex> inputs = loss.inputs;
    inputs[0] = logs;
    loss.outputs.resize(1);
    const std::string origin = OriginOf(model_, loss).target;
    model_.restored.push_back(
        {loss.name, "LogSoftmax, NegativeLogLikelihoodLoss", origin, {loss.type()}});
    made_.Replace(loss, std::move(picked), std::move(inputs), 0);
  }

  // ---- GroupNormalization
  // -------------------------------------------------------------------------

  // Add(Mul(Reshape(InstanceNormalization(Reshape(x), 1, 0)), scale), shift)
  bool RestoreGroupNorm(size_t index) {
    const ModelOperation& add = model_.operations[index];
    for (const size_t position : {size_t{0}, size_t{1}}) {
      const ModelOperation* const mul = OwnProducer(add.input(position), "Mul", index);
      if (mul == nullptr) continue;
      for (const size_t factor : {size_t{0}, size_t{1}}) {
        if (RestoreGroupNormOf(*mul, factor, index, add.input(1 - position))) return true;
      }
    }
    return false;
  }

  bool RestoreGroupNormOf(const ModelOperation& mul, size_t factor, size_t index,
                          ValueIndex shift) {
    const ModelOperation* const back = OwnProducer(mul.input(factor), "Reshape", IndexOf(mul));
    if (back == nullptr) return false;
    const ModelOperation* const norm =
        OwnProducer(back->input(0), "InstanceNormalization", IndexOf(*back));
    if (norm == nullptr) return false;
    const ModelOperation* const split = ProducerOfType(norm->input(0), "Reshape");
    if (split == nullptr || norm->inputs.size() != 3) return false;
    const ValueIndex x = split->input(0);
    const Dims& dims = DimsOf(x);
    const Dims& groups = DimsOf(norm->inputs[0]);
    if (dims.size() < 2 || dims != DimsOf(model_.operations[index].outputs[0])) return false;
    if (groups.size() < 3 || groups[0] != dims[0] || dims[1] % groups[1] != 0) return false;
    const std::vector<size_t> operations = {IndexOf(*norm), IndexOf(mul), index};
    const auto origin = CommonOrigin(model_, operations);
    if (!origin) return false;
    // The exporter's optimizer leaves constants with unread contents.
    const bool is_known = origin->Is("aten.group_norm") || origin->Is("aten.native_group_norm");
    const bool is_plain = HoldsOnly(norm->inputs[1], 1) && HoldsOnly(norm->inputs[2], 0);
    if (!is_known && !is_plain) return false;
    const ValueIndex scale = mul.input(1 - factor);
    if (!IsOfChannels(scale, dims) || !IsOfChannels(shift, dims)) return false;
    onnx::NodeProto node = NodeOfType("GroupNormalization");
    SetInt(node, "num_groups", groups[1]);
    SetFloat(node, "epsilon", FloatAttribute(*norm->node, "epsilon", 1e-5));
    const std::vector<ValueIndex> inputs = {x, VectorOf(scale, dims[1], index),
                                            VectorOf(shift, dims[1], index)};
    return Replace(operations, std::move(node), inputs, kOpsetOfChannelScale);
  }

  // Returns the vector that the constant was reshaped from, or a vector reshaped from it.
  ValueIndex VectorOf(ValueIndex value, int64_t channels, size_t reader) {
    for (ValueIndex at = value;;) {
      if (DimsOf(at) == Dims{channels}) return at;
      const ModelValue& known = model_.value(at);
      if (known.source != ModelValue::Source::kOperation) break;
      const ModelOperation& producer = model_.operations[static_cast<size_t>(known.producer)];
      const OpKind kind = facts_.operations[IndexOf(producer)].rule->kind;
      const bool is_view = kind == OpKind::kView || kind == OpKind::kCastLike;
      if (!producer.is_standard() || !is_view || producer.input(0) == kNoValue) break;
      if (model_.value(producer.inputs[0]).elem_type != known.elem_type) break;
      at = producer.inputs[0];
    }
    const std::string name = model_.value(value).name + ":vector";
    const ValueIndex vector = made_.NewValue(name, value);
    model_.value(vector).dims = {channels};
    made_.InsertBefore(reader, NodeOfType("Reshape"), name, {value}, {vector}, 0);
    return vector;
  }

  Model::Impl& model_;
  const Autograd autograd_;
  const ModelFacts& facts_;
  const ValueReaders& readers_;
  OperationEdits made_;
};

}  // namespace

void RestoreOperators(Model::Impl& model, Autograd autograd) {
  Restorer(model, autograd).RestoreAll();
}

}  // namespace ckplan
