#include "lib/executor/cuda/traffic/element_orders.h"

#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

namespace {

constexpr size_t kImageAxes = 4;

bool ConvolvesInBothOrders(const OpSpec& spec) {
  if (!MultipliesHalves(spec) || spec.input(0).dims.size() != kImageAxes) return false;
  const auto shape = ReadConvShape(spec);
  return shape.ok() && FitsEvenPads(shape->window);
}

bool PoolsInBothOrders(const OpSpec& spec) {
  if (spec.type == "AveragePool" || spec.type == "GlobalAveragePool") return true;
  // Indices of maxima, as ONNX counts them, are those of the model's order.
  return spec.type == "MaxPool" && !spec.output(1).is_present;
}

}  // namespace

ElementOrders OrdersOf(const OpSpec& spec) {
  if (spec.type == "Conv" || spec.type == "ConvTranspose") {
    return ConvolvesInBothOrders(spec) ? ElementOrders::kEach : ElementOrders::kOfModel;
  }
  const bool is_alike =
      spec.type == "BatchNormalization" || PoolsInBothOrders(spec) || HasStoredOrder(spec);
  return is_alike ? ElementOrders::kAlike : ElementOrders::kOfModel;
}

bool FitsEvenPads(const Window& window) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t room = window.in[i] + 2 * window.begin[i] - window.extent(i);
    if (room < 0 || room / window.strides[i] + 1 != window.out[i]) return false;
  }
  return true;
}

}  // namespace ckplan::cuda
