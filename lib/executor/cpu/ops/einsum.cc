// Einsum. The gradient of an operand is itself an Einsum of the output's gradient and the other
// operands. An Einsum of two operands without repeated axes is a matrix product between changes of
// layout; any other is summed element by element.
#include <algorithm>
#include <array>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/problem/ops/matmul.h"

namespace ckplan::cpu {

namespace {

class Contractor {
 public:
  virtual ~Contractor() = default;
  virtual int64_t workspace() const { return 0; }
  virtual void Run(const std::vector<const float*>& factors, float* result,
                   void* workspace) const = 0;
};

class PlainContractor final : public Contractor {
 public:
  explicit PlainContractor(const Contraction& contraction) {
    result_size_ = Product(contraction.result.dims);
    for (const ContractionLoop& loop : LoopsOf(contraction)) {
      (loop.strides.back() != 0 ? outer_ : inner_).push_back(loop);
    }
  }

  void Run(const std::vector<const float*>& factors, float* result, void*) const override {
    std::fill_n(result, result_size_, 0.0F);  // Elements off a diagonal stay zero.
    int64_t outer = 1;
    int64_t inner = 1;
    for (const ContractionLoop& loop : outer_) outer *= loop.size;
    for (const ContractionLoop& loop : inner_) inner *= loop.size;
    ParallelFor(outer, std::max<int64_t>(1, kGrain / 8 / inner), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < inner; ++i) {
          double product = 1;
          for (size_t f = 0; f < factors.size(); ++f) {
            product *=
                static_cast<double>(factors[f][OffsetAt(outer_, o, f) + OffsetAt(inner_, i, f)]);
          }
          sum += product;
        }
        result[OffsetAt(outer_, o, factors.size())] = static_cast<float>(sum);
      }
    });
  }

 private:
  static int64_t OffsetAt(const std::vector<ContractionLoop>& loops, int64_t number, size_t term) {
    int64_t offset = 0;
    for (const ContractionLoop& loop : loops) {
      offset += number % loop.size * loop.strides[term];
      number /= loop.size;
    }
    return offset;
  }

  std::vector<ContractionLoop> outer_, inner_;  // The axes of the result, and the summed axes.
  int64_t result_size_ = 0;
};

// Describes the term with its axes permuted to `order`.
dnnl::memory::desc DescOf(const Term& term, const std::string& order) {
  Dims dims;
  Dims strides;
  for (const char label : order) {
    const size_t axis = term.labels.find(label);
    dims.push_back(term.dims[axis]);
    strides.push_back(
        Product({term.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, term.dims.end()}));
  }
  if (order.empty()) return PlainDesc({1});
  return {dims, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc PlainDescOf(const Term& term, const std::string& order) {
  return PlainDesc(DescOf(term, order).get_dims());
}

class ProductContractor final : public Contractor {
 public:
  ProductContractor(const Contraction& contraction, const ProductLabels& labels) {
    const Term& a = contraction.factors[0];
    const Term& b = contraction.factors[1];
    const Term& c = contraction.result;
    const std::string a_order = labels.batch + labels.m + labels.k;
    const std::string b_order = labels.batch + labels.k + labels.n;
    const std::string c_order = labels.batch + labels.m + labels.n;
    changes_[0] = LayoutChange(device_, DescOf(a, a_order), PlainDescOf(a, a_order));
    changes_[1] = LayoutChange(device_, DescOf(b, b_order), PlainDescOf(b, b_order));
    changes_[2] = LayoutChange(device_, PlainDescOf(c, c_order), DescOf(c, c_order));
    MatrixTriples triples;
    for (int64_t i = 0; i < contraction.Count(labels.batch); ++i) triples.c.push_back(i);
    triples.a = triples.b = triples.c;
    product_ = std::make_unique<BatchedMatMul>(ProductShape{.m = contraction.Count(labels.m),
                                                            .n = contraction.Count(labels.n),
                                                            .k = contraction.Count(labels.k)},
                                               triples);
    PlanWorkspace({Product(a.dims), Product(b.dims), Product(c.dims)});
  }

  int64_t workspace() const override { return plan_.total(); }

  void Run(const std::vector<const float*>& factors, float* result,
           void* workspace) const override {
    void* scratch = FloatsAt(workspace, scratch_);
    std::array<const float*, 2> operands = {factors[0], factors[1]};
    for (size_t i = 0; i < 2; ++i) {
      if (!changes_[i].is_needed()) continue;
      float* moved = FloatsAt(workspace, copies_[i]);
      changes_[i].Run(device_, factors[i], moved, scratch);
      operands[i] = moved;
    }
    const bool moves_result = changes_[2].is_needed();
    float* product = moves_result ? FloatsAt(workspace, copies_[2]) : result;
    product_->Run(operands[0], operands[1], product, scratch);
    if (moves_result) changes_[2].Run(device_, product, result, scratch);
  }

 private:
  void PlanWorkspace(const std::array<int64_t, 3>& sizes) {
    int64_t scratch = product_->workspace();
    for (size_t i = 0; i < 3; ++i) {
      if (!changes_[i].is_needed()) continue;
      copies_[i] = plan_.Add(sizes[i] * static_cast<int64_t>(sizeof(float)));
      scratch = std::max(scratch, changes_[i].workspace());
    }
    scratch_ = plan_.Add(scratch);
  }

  DnnlDevice device_;
  // The layout changes of the two factors before the product, and of the result after it.
  std::array<LayoutChange, 3> changes_;
  std::unique_ptr<BatchedMatMul> product_;
  WorkspacePlan plan_;
  std::array<int64_t, 3> copies_ = {};
  int64_t scratch_ = 0;
};

std::unique_ptr<Contractor> MakeContractor(const Contraction& contraction) {
  const auto labels = FindProduct(contraction);
  if (labels.has_value() && contraction.Count(labels->batch) <= kMaxMatrices) {
    return std::make_unique<ProductContractor>(contraction, *labels);
  }
  return std::make_unique<PlainContractor>(contraction);
}

class EinsumOp final : public PreparedOp {
 public:
  explicit EinsumOp(const EinsumShape& shape)
      : forward_(MakeContractor(shape.forward)), gradients_(shape.gradients.size()) {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (!shape.gradients[i].has_value()) continue;
      gradients_[i] = MakeContractor(*shape.gradients[i]);
      workspace_.backward = std::max(workspace_.backward, gradients_[i]->workspace());
    }
    workspace_.forward = forward_->workspace();
  }

  OpWorkspace workspace() const override { return workspace_; }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    forward_->Run(Factors(call.inputs), Floats(call.outputs[0]), call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    std::vector<const float*> factors = Factors(call.inputs);
    factors[position] = Floats(call.output_gradients[0]);
    gradients_[position]->Run(factors, Floats(gradient), call.workspace);
  }

 private:
  static std::vector<const float*> Factors(std::span<const void* const> inputs) {
    std::vector<const float*> factors;
    for (const void* input : inputs) factors.push_back(Floats(input));
    return factors;
  }

  std::unique_ptr<Contractor> forward_;
  std::vector<std::unique_ptr<Contractor>> gradients_;
  OpWorkspace workspace_;
};

Result<std::unique_ptr<PreparedOp>> PrepareEinsum(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const EinsumShape shape, ReadEinsumShape(spec));
  return Guarded(spec, [&] { return std::make_unique<EinsumOp>(shape); });
}

constexpr OpRow kEinsumOps[] = {{"Einsum", PrepareEinsum}};

}  // namespace

std::span<const OpRow> EinsumOps() { return kEinsumOps; }

}  // namespace ckplan::cpu
