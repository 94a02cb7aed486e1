#include "lib/executor/reference/fill.h"

#include <utility>

namespace ckplan::reference {

namespace {

class Filler {
 public:
  Filler(const OpCase& op_case, uint64_t seed) : rng_(seed) {
    int64_t count = 0;
    for (const Operand& operand : op_case.spec.inputs) {
      if (operand.is_present && operand.type == ElementType::kFloat32) count += operand.elements();
    }
    count += count % 2;  // With an even number of cells, 0 lies between two cells.
    for (int64_t i = 0; i < count; ++i) {
      const double jitter = static_cast<double>(rng_.Between(-25, 25)) / 100.0;
      points_.push_back((static_cast<double>(i) + 0.5 + jitter) / static_cast<double>(count));
    }
    for (size_t i = points_.size(); i > 1; --i) {
      const auto other = static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(i) - 1));
      std::swap(points_[i - 1], points_[other]);
    }
  }

  Tensor Fill(const Operand& operand, const Contents& contents) {
    Tensor tensor = EmptyTensor(operand);
    if (!operand.is_present) return tensor;
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] = contents.values.empty() ? Next(operand, contents) : contents.values[i];
    }
    return tensor;
  }

 private:
  double Next(const Operand& operand, const Contents& contents) {
    if (operand.type != ElementType::kFloat32) {
      return static_cast<double>(
          rng_.Between(static_cast<int64_t>(contents.low), static_cast<int64_t>(contents.high)));
    }
    const double point = points_.back();
    points_.pop_back();
    return static_cast<float>(contents.low + (contents.high - contents.low) * point);
  }

  Rng rng_;
  std::vector<double> points_;
};

}  // namespace

Tensor EmptyTensor(const Operand& operand) {
  Tensor tensor{operand.is_present, operand.type, operand.dims, {}};
  if (operand.is_present) tensor.values.assign(static_cast<size_t>(operand.elements()), 0.0);
  return tensor;
}

std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed) {
  Filler filler(op_case, seed);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < op_case.spec.inputs.size(); ++i) {
    inputs.push_back(filler.Fill(op_case.spec.inputs[i], op_case.contents[i]));
  }
  return inputs;
}

Tensor RandomGradient(const Operand& operand, Rng& rng) {
  if (operand.type != ElementType::kFloat32) return {};
  Tensor gradient = EmptyTensor(operand);
  for (double& value : gradient.values) {
    value = static_cast<float>(static_cast<double>(rng.Between(-1000, 1000)) / 1000.0);
  }
  return gradient;
}

}  // namespace ckplan::reference
