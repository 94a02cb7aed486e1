#include "lib/executor/cuda/product.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/executor/cuda/testing/host/host_device.h"

namespace ckplan::cuda {
namespace {

// cuBLAS refuses a matrix without columns whose rows have no distance.
TEST_CASE("cuda product: a product without terms is zero, or adds nothing") {
  const auto device = MakeHostDevice();
  for (const bool adds : {false, true}) {
    CAPTURE(adds);
    MatrixProduct product;
    product.m = 2;
    product.n = 3;
    product.k = 0;
    product.a = {ElementType::kFloat32, false, 0, 0};
    product.b = {ElementType::kFloat32, false, 3, 0};
    product.c = {ElementType::kFloat32, false, 3, 6};
    product.adds = adds;
    const BatchedProduct batched(*device, product);
    void* const a = *device->Allocate(0);
    void* const b = *device->Allocate(0);
    void* const c = *device->Allocate(24);
    void* const workspace = *device->Allocate(batched.workspace());
    std::vector<float> values(6, 5);
    device->Upload(c, values.data(), 24);
    batched.Run(a, b, c, workspace);
    device->Download(values.data(), c, 24);
    CHECK(values == std::vector<float>(6, adds ? 5.0F : 0.0F));
    for (void* memory : {a, b, c, workspace}) device->Release(memory);
  }
}

}  // namespace
}  // namespace ckplan::cuda
