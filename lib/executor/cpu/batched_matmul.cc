#include "lib/executor/cpu/batched_matmul.h"

#include <algorithm>
#include <cstring>

namespace ckplan::cpu {

namespace {

// Returns whether `places` is 0, 1, 2, ..., so that the matrices are used in memory order.
bool IsSequence(const std::vector<int64_t>& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool IsOneMatrix(const std::vector<int64_t>& places) {
  return std::all_of(places.begin(), places.end(), [](int64_t place) { return place == 0; });
}

}  // namespace

BatchedMatMul::BatchedMatMul(ProductShape shape, MatrixTriples triples)
    : triples_(std::move(triples)),
      a_size_(shape.m * shape.k),
      b_size_(shape.k * shape.n),
      c_size_(shape.m * shape.n) {
  for (const int64_t place : triples_.c) c_count_ = std::max(c_count_, place + 1);
  const bool has_one_a = IsOneMatrix(triples_.a);
  const bool has_one_b = IsOneMatrix(triples_.b);
  is_one_call_ = IsSequence(triples_.c) && (has_one_a || IsSequence(triples_.a)) &&
                 (has_one_b || IsSequence(triples_.b));
  adds_ = !is_one_call_ && c_count_ < static_cast<int64_t>(triples_.c.size());
  shape.batch = is_one_call_ ? static_cast<int64_t>(triples_.c.size()) : 1;
  shape.a.is_shared = has_one_a;
  shape.b.is_shared = has_one_b;
  shape.adds = shape.adds || adds_;
  product_ = std::make_unique<MatMulKernel>(shape);
}

void BatchedMatMul::Run(const float* a, const float* b, float* c, void* workspace) const {
  if (is_one_call_) {
    product_->Run(a, b, c, workspace);
    return;
  }
  if (adds_) std::memset(c, 0, static_cast<size_t>(c_count_ * c_size_) * sizeof(float));
  for (size_t i = 0; i < triples_.c.size(); ++i) {
    product_->Run(a + triples_.a[i] * a_size_, b + triples_.b[i] * b_size_,
                  c + triples_.c[i] * c_size_, workspace);
  }
}

}  // namespace ckplan::cpu
