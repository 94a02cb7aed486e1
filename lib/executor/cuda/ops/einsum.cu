// Einsum. The gradient of an operand is itself an Einsum of the output's gradient and the other
// operands. An Einsum of two operands without repeated axes is a matrix product, on the tensors in
// place if their axes allow it, otherwise on reordered copies; any other Einsum is summed element
// by element.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/product.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/matmul.h"

namespace ckplan::cuda {

namespace {

constexpr size_t kMaxFactors = 5;
constexpr auto kMaxOperands = static_cast<int>(kMaxFactors) + 1;

// A contraction with the types of its tensors: those of the factors, and then that of the result.
struct TypedContraction {
  Contraction contraction;
  std::vector<ElementType> types;
};

class Contractor {
 public:
  virtual ~Contractor() = default;
  virtual int64_t workspace() const = 0;
  virtual void Run(const std::vector<const void*>& factors, void* result,
                   void* workspace) const = 0;
};

// Converts nested loops to a layout, ordered by descending stride of operand `leading`. Operands
// beyond those of the contraction get strides of 0.
Layout LayoutOf(std::vector<ContractionLoop> loops, size_t leading) {
  std::stable_sort(loops.begin(), loops.end(), [&](const auto& a, const auto& b) {
    return a.strides[leading] > b.strides[leading];
  });
  Dims dims;
  std::vector<Dims> strides(kMaxOperands);
  for (const ContractionLoop& loop : loops) {
    dims.push_back(loop.size);
    for (size_t k = 0; k < strides.size(); ++k) {
      strides[k].push_back(k < loop.strides.size() ? loop.strides[k] : 0);
    }
  }
  return Collapse(dims, strides);
}

// The loops over axes that the result has (outer), and over summed axes (inner).
struct PlainLayouts {
  Layout outer, inner;

  explicit PlainLayouts(const Contraction& contraction) {
    std::vector<ContractionLoop> with, without;
    for (const ContractionLoop& loop : LoopsOf(contraction)) {
      (loop.strides.back() != 0 ? with : without).push_back(loop);
    }
    outer = LayoutOf(std::move(with), contraction.factors.size());
    inner = LayoutOf(std::move(without), 0);
  }
};

class PlainContractor final : public Contractor {
 public:
  PlainContractor(Device& device, const TypedContraction& of, const PlainLayouts& layouts)
      : device_(device),
        types_(of.types),
        outer_(layouts.outer),
        inner_(layouts.inner),
        result_bytes_(Product(of.contraction.result.dims) * SizeOf(of.types.back())),
        is_partial_(Product(of.contraction.result.dims) != outer_.count()),
        sums_(ReduceShape::Of(outer_.count(), inner_.count(), layouts.inner.inner_stride(0) != 1)) {
  }

  int64_t workspace() const override { return sums_.workspace<float>(); }

  void Run(const std::vector<const void*>& factors, void* result, void* workspace) const override {
    const int count = static_cast<int>(factors.size());
    Factors in;
    for (size_t f = 0; f < factors.size(); ++f) in.at[f] = FloatsIn(factors[f], types_[f]);
    const FloatsOut to(result, types_.back());
    const DeviceLayout<kMaxOperands> outer = outer_;
    const DeviceLayout<kMaxOperands> inner = inner_;
    if (is_partial_) device_.Zero(result, result_bytes_);
    Reduce(
        device_, sums_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t o, int64_t i) {
          const auto first = outer.Find(o);
          const auto next = inner.Find(i);
          float product = 1;
          for (int f = 0; f < count; ++f) product *= in.at[f][first[f] + next[f]];
          return product;
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t o, float sum) { to.Set(outer.Find(o)[count], sum); },
        workspace);
  }

  struct Factors {
    FloatsIn at[kMaxFactors];
  };

 private:
  Device& device_;
  std::vector<ElementType> types_;
  DeviceLayout<kMaxOperands> outer_, inner_;
  int64_t result_bytes_;
  bool is_partial_;  // Whether elements off a diagonal stay zero.
  ReduceShape sums_;
};

// Returns the strides of the term for each label of `order`. The term has each label once.
Dims StridesOf(const Term& term, const std::string& order) {
  const Dims own = RowMajorStrides(term.dims);
  Dims strides;
  for (const char label : order) strides.push_back(own[term.labels.find(label)]);
  return strides;
}

Dims DimsOf(const Term& term, const std::string& order) {
  Dims dims;
  for (const char label : order) dims.push_back(term.dims[term.labels.find(label)]);
  return dims;
}

// Returns the labels of `all` in the order in which they occur in the term.
std::string Ordered(const std::string& all, const Term& term) {
  std::string ordered;
  for (const char label : term.labels) {
    if (all.find(label) != std::string::npos) ordered += label;
  }
  return ordered;
}

// Several axes of a term merged into one, if their strides allow it.
struct MergedAxis {
  int64_t size = 1;
  int64_t stride = 1;
};
std::optional<MergedAxis> Merge(const Term& term, const std::string& order) {
  const Layout layout = Collapse(DimsOf(term, order), {StridesOf(term, order)});
  if (layout.dims.size() > 1) return std::nullopt;
  return MergedAxis{layout.dims[0], layout.strides[0][0]};
}

// One of the three tensors of a product, viewed as matrices with these axes.
struct ProductOperand {
  std::string rows, columns;
  MatrixTensor matrix;
  Dims batch_strides;
  bool is_copied = false;  // Otherwise the tensor itself is read as matrices.

  // `is_result` says that the tensor must not be transposed.
  ProductOperand(const Term& term, ElementType type, const std::string& batch, std::string of_rows,
                 std::string of_columns, bool is_result)
      : rows(std::move(of_rows)), columns(std::move(of_columns)) {
    matrix.type = type;
    matrix.elements = Product(term.dims);
    batch_strides = StridesOf(term, batch);
    if (FindView(term, is_result)) return;
    is_copied = true;
    matrix.is_transposed = false;
    matrix.row_stride = Product(DimsOf(term, columns));
    const int64_t size = Product(DimsOf(term, rows)) * matrix.row_stride;
    batch_strides = RowMajorStrides(DimsOf(term, batch));
    for (int64_t& stride : batch_strides) stride *= size;
  }

 private:
  bool FindView(const Term& term, bool is_result) {
    const auto row = Merge(term, rows);
    const auto column = Merge(term, columns);
    if (!row || !column) return false;
    if (column->size == 1 || column->stride == 1) {
      matrix.row_stride = row->size == 1 ? column->size : row->stride;
      return true;
    }
    if (is_result || (row->size != 1 && row->stride != 1)) return false;
    matrix.is_transposed = true;
    matrix.row_stride = column->stride;
    return true;
  }
};

// Copies a tensor to another order of its axes, or back.
class Reordering {
 public:
  Reordering() = default;
  Reordering(const Term& term, const std::string& order) {
    const Dims dims = DimsOf(term, order);
    layout_ = DeviceLayout<2>(Collapse(dims, {StridesOf(term, order), RowMajorStrides(dims)}));
  }

  // Copies from the order of the term to the new order.
  void Run(Device& device, FloatsIn from, FloatsOut to) const {
    const DeviceLayout<2> layout = layout_;
    ForEach(device, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
      const auto at = layout.Find(i);
      to.Set(at[1], from[at[0]]);
    });
  }
  void RunBack(Device& device, FloatsIn from, FloatsOut to) const {
    const DeviceLayout<2> layout = layout_;
    ForEach(device, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
      const auto at = layout.Find(i);
      to.Set(at[0], from[at[1]]);
    });
  }

 private:
  DeviceLayout<2> layout_;
};

class ProductContractor final : public Contractor {
 public:
  ProductContractor(Device& device, const TypedContraction& of, ProductLabels labels)
      : device_(device), types_(of.types) {
    const Term* terms[] = {&of.contraction.factors[0], &of.contraction.factors[1],
                           &of.contraction.result};
    labels.m = Ordered(labels.m, *terms[0]);
    labels.n = Ordered(labels.n, *terms[1]);
    labels.k = Ordered(labels.k, *terms[0]);
    labels.batch = Ordered(labels.batch, *terms[2]);
    swaps_ = IsResultTransposed(*terms[2], labels);
    if (swaps_) {  // Cᵀ = Bᵀ Aᵀ.
      std::swap(terms[0], terms[1]);
      std::swap(types_[0], types_[1]);
      std::swap(labels.m, labels.n);
    }
    const std::string& batch = labels.batch;
    const ProductOperand operands[] = {
        {*terms[0], types_[0], batch, labels.m, labels.k, false},
        {*terms[1], types_[1], batch, labels.k, labels.n, false},
        {*terms[2], types_[2], batch, labels.m, labels.n, true},
    };
    MatrixProduct product;
    product.m = Product(DimsOf(*terms[0], labels.m));
    product.n = Product(DimsOf(*terms[1], labels.n));
    product.k = Product(DimsOf(*terms[0], labels.k));
    product.a = operands[0].matrix;
    product.b = operands[1].matrix;
    product.c = operands[2].matrix;
    product.batch =
        Collapse(DimsOf(*terms[2], batch),
                 {operands[0].batch_strides, operands[1].batch_strides, operands[2].batch_strides});
    product_ = std::make_unique<BatchedProduct>(device, product);
    for (size_t i = 0; i < 3; ++i) {
      is_copied_[i] = operands[i].is_copied;
      if (!is_copied_[i]) continue;
      reorderings_[i] = Reordering(*terms[i], batch + operands[i].rows + operands[i].columns);
      copies_[i] = plan_.Add(operands[i].matrix.elements * SizeOf(types_[i]));
    }
    scratch_ = plan_.Add(product_->workspace());
  }

  int64_t workspace() const override { return plan_.total(); }

  void Run(const std::vector<const void*>& factors, void* result, void* workspace) const override {
    std::array<const void*, 2> in = {factors[swaps_ ? 1 : 0], factors[swaps_ ? 0 : 1]};
    for (size_t i = 0; i < 2; ++i) {
      if (!is_copied_[i]) continue;
      void* copy = BufferAt(workspace, copies_[i]);
      reorderings_[i].Run(device_, FloatsIn(in[i], types_[i]), FloatsOut(copy, types_[i]));
      in[i] = copy;
    }
    void* to = is_copied_[2] ? BufferAt(workspace, copies_[2]) : result;
    product_->Run(in[0], in[1], to, BufferAt(workspace, scratch_));
    if (is_copied_[2]) {
      reorderings_[2].RunBack(device_, FloatsIn(to, types_[2]), FloatsOut(result, types_[2]));
    }
  }

 private:
  static bool IsResultTransposed(const Term& result, const ProductLabels& labels) {
    const auto rows = Merge(result, labels.m);
    const auto columns = Merge(result, labels.n);
    return rows && columns && rows->stride == 1 && rows->size > 1 && columns->size > 1;
  }

  Device& device_;
  std::vector<ElementType> types_;  // Types of A, B and C.
  bool swaps_ = false;              // A is the second factor and B the first.
  std::unique_ptr<BatchedProduct> product_;
  std::array<bool, 3> is_copied_ = {};
  std::array<Reordering, 3> reorderings_;
  std::array<int64_t, 3> copies_ = {};
  WorkspacePlan plan_;
  int64_t scratch_ = 0;
};

// Returns whether a matrix product is worthwhile. It is not for dot products, nor for products
// without a sum.
bool IsWorthProduct(const Contraction& contraction, const ProductLabels& labels) {
  const auto sizes = contraction.Sizes();
  const auto count = [&](const std::string& of) {
    int64_t product = 1;
    for (const char label : of) product *= sizes.at(label);
    return product;
  };
  return count(labels.k) > 1 && count(labels.m) * count(labels.n) > 1;
}

// Returns null if the contraction has too many axes.
std::unique_ptr<Contractor> MakeContractor(Device& device, const TypedContraction& of) {
  const auto labels = FindProduct(of.contraction);
  if (labels && IsWorthProduct(of.contraction, *labels)) {
    return std::make_unique<ProductContractor>(device, of, *labels);
  }
  const PlainLayouts layouts(of.contraction);
  if (!FitsDevice(layouts.outer) || !FitsDevice(layouts.inner)) return nullptr;
  return std::make_unique<PlainContractor>(device, of, layouts);
}

struct Contractors {
  std::unique_ptr<Contractor> forward;
  std::vector<std::unique_ptr<Contractor>> gradients;  // Indexed by position; null if not needed.
};

class EinsumOp final : public PreparedOp {
 public:
  explicit EinsumOp(Contractors contractors) : contractors_(std::move(contractors)) {
    workspace_.forward = contractors_.forward->workspace();
    for (const auto& gradient : contractors_.gradients) {
      if (gradient) workspace_.backward = std::max(workspace_.backward, gradient->workspace());
    }
  }

  OpWorkspace workspace() const override { return workspace_; }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    contractors_.forward->Run({call.inputs.begin(), call.inputs.end()}, call.outputs[0],
                              call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    std::vector<const void*> factors(call.inputs.begin(), call.inputs.end());
    factors[position] = call.output_gradients[0];
    contractors_.gradients[position]->Run(factors, gradient, call.workspace);
  }

 private:
  Contractors contractors_;
  OpWorkspace workspace_;
};

// Refuses operators that only this backend does not support.
Result<Done> CheckLimits(const OpSpec& spec) {
  if (spec.inputs.size() > kMaxFactors) return Unsupported(spec, "it has more than 5 operands");
  for (const auto* operands : {&spec.inputs, &spec.outputs}) {
    for (const Operand& operand : *operands) {
      if (operand.dims.size() <= kMaxAxes) continue;
      return Unsupported(spec, "an operand of it has more than 8 axes");
    }
  }
  return Done{};
}

Result<std::unique_ptr<PreparedOp>> PrepareEinsum(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const EinsumShape shape, ReadEinsumShape(spec));
  CKPLAN_RETURN_IF_ERROR(CheckLimits(spec));
  TypedContraction forward{shape.forward, {}};
  for (const Operand& input : spec.inputs) forward.types.push_back(input.type);
  forward.types.push_back(spec.output(0).type);
  Contractors contractors;
  contractors.forward = MakeContractor(device, forward);
  bool fits = contractors.forward != nullptr;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    auto& gradient = contractors.gradients.emplace_back();
    if (!shape.gradients[i].has_value()) continue;
    TypedContraction backward{*shape.gradients[i], forward.types};
    std::swap(backward.types[i], backward.types.back());
    gradient = MakeContractor(device, backward);
    fits = fits && gradient != nullptr;
  }
  if (!fits) return Unsupported(spec, "it sums over, or has, more than 8 axes");
  return Prepared<EinsumOp>(std::move(contractors));
}

constexpr OpRow kEinsumOps[] = {{"Einsum", PrepareEinsum, "up to 5 operands, up to 8 axes"}};

}  // namespace

std::span<const OpRow> EinsumOps() { return kEinsumOps; }

}  // namespace ckplan::cuda
