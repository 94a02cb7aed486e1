#include "lib/executor/core/element_orders.h"

#include <numeric>
#include <utility>
#include <vector>

namespace ckplan {

namespace {

constexpr size_t kAxes = 4;

// Sets of tensors that must share an element order, each with a representative tensor.
class TensorSets {
 public:
  explicit TensorSets(size_t tensors) : parent_(tensors) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t Find(size_t tensor) {
    while (parent_[tensor] != tensor) tensor = parent_[tensor] = parent_[parent_[tensor]];
    return tensor;
  }
  void Join(size_t a, size_t b) { parent_[Find(b)] = Find(a); }

 private:
  std::vector<size_t> parent_;
};

class OrderChooser {
 public:
  OrderChooser(StepGraph& step, const OrdersOfOp& orders_of)
      : step_(step),
        orders_of_(orders_of),
        sets_(step.tensors.size()),
        needs_model_order_(step.tensors.size(), false),
        prefers_channels_last_(step.tensors.size(), false) {}

  void Choose() && {
    for (const StepInput& input : step_.inputs) RequireModelOrder(input.tensor);
    for (const TensorId output : step_.graph.outputs()) RequireModelOrder(output);
    for (const StepNode& node : step_.nodes) {
      const ElementOrders orders = orders_of_(node.spec);
      Read(node, orders);
      orders_.push_back(orders);
    }
    if (!MarkTensors()) return;
    for (const NodeId id : step_.nodes.ids()) MarkNode(step_.nodes[id], orders_[id]);
  }

 private:
  template <typename Visit>
  static void ForOperands(const StepNode& node, const Visit& visit) {
    for (size_t i = 0; i < node.spec.inputs.size(); ++i) {
      const Operand& operand = node.spec.inputs[i];
      if (operand.is_present) visit(operand, node.inputs[i].tensor, i == 0);
    }
    for (size_t i = 0; i < node.spec.outputs.size(); ++i) {
      const Operand& operand = node.spec.outputs[i];
      if (operand.is_present) visit(operand, node.outputs[i], i == 0);
    }
  }

  static size_t IndexOf(TensorId tensor) { return static_cast<size_t>(tensor.index()); }

  // Forces the model's order on this tensor.
  void RequireModelOrder(TensorId tensor) {
    if (!tensor.is_none()) needs_model_order_[IndexOf(tensor)] = true;
  }

  // True for a four-axis tensor whose order is free. A view of a tensor has other dimensions.
  bool HasFreeOrder(const Operand& operand, TensorId tensor) const {
    return !tensor.is_none() && operand.dims.size() == kAxes && !HasOneOrder(operand.dims) &&
           step_.tensors[tensor].dims == operand.dims;
  }

  void Read(const StepNode& node, ElementOrders orders) {
    if (orders == ElementOrders::kAlike) return Join(node);
    ForOperands(node, [&](const Operand& operand, TensorId tensor, bool is_first) {
      if (orders == ElementOrders::kEach && is_first && HasFreeOrder(operand, tensor)) {
        prefers_channels_last_[IndexOf(tensor)] = true;
      } else {
        RequireModelOrder(tensor);
      }
    });
  }

  void Join(const StepNode& node) {
    TensorId first;
    bool needs_model_order = false;
    ForOperands(node, [&](const Operand& operand, TensorId tensor, bool) {
      if (!HasFreeOrder(operand, tensor)) {
        RequireModelOrder(tensor);
        needs_model_order = needs_model_order || !HasOneOrder(operand.dims);
        return;
      }
      if (first.is_none()) first = tensor;
      sets_.Join(IndexOf(first), IndexOf(tensor));
    });
    if (needs_model_order) RequireModelOrder(first);
  }

  bool MarkTensors() {
    std::vector<bool> needs_model_order(needs_model_order_.size(), false);
    std::vector<bool> prefers_channels_last(needs_model_order_.size(), false);
    for (size_t i = 0; i < needs_model_order_.size(); ++i) {
      if (needs_model_order_[i]) needs_model_order[sets_.Find(i)] = true;
      if (prefers_channels_last_[i]) prefers_channels_last[sets_.Find(i)] = true;
    }
    bool is_any = false;
    for (const TensorId tensor : step_.tensors.ids()) {
      const size_t set = sets_.Find(IndexOf(tensor));
      step_.tensors[tensor].is_channels_last =
          prefers_channels_last[set] && !needs_model_order[set];
      is_any = is_any || step_.tensors[tensor].is_channels_last;
    }
    return is_any;
  }

  void MarkNode(StepNode& node, ElementOrders orders) {
    const auto mark = [&](Operand& operand, TensorId tensor) {
      operand.is_channels_last =
          HasFreeOrder(operand, tensor) && step_.tensors[tensor].is_channels_last;
    };
    for (size_t i = 0; i < node.spec.inputs.size(); ++i) {
      mark(node.spec.inputs[i], node.inputs[i].tensor);
    }
    for (size_t i = 0; i < node.spec.outputs.size(); ++i) {
      mark(node.spec.outputs[i], node.outputs[i]);
    }
    if (orders == ElementOrders::kAlike && HasStoredOrder(node.spec)) {
      node.spec = InStoredOrder(std::move(node.spec));
    }
  }

  StepGraph& step_;
  const OrdersOfOp& orders_of_;
  TensorSets sets_;
  std::vector<bool> needs_model_order_;      // By tensor: something requires the model's order.
  std::vector<bool> prefers_channels_last_;  // By tensor: an operator prefers channels-last.
  IdVector<NodeId, ElementOrders> orders_;
};

}  // namespace

void ChooseOrders(StepGraph& step, const OrdersOfOp& orders_of) {
  OrderChooser(step, orders_of).Choose();
}

void ChooseOrders(StepGraph& step, const Backend& backend) {
  ChooseOrders(step, [&backend](const OpSpec& spec) { return backend.OrdersOf(spec); });
}

}  // namespace ckplan
