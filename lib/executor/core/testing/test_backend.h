// The backend for this folder's tests. Several programs link the tests, each with its own
// definition of MakeTestBackend: the CPU backend in this folder, the CUDA backend in
// lib/executor/cuda.
#pragma once

#include <memory>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/planning/plan/model_variant.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend();

// Returns the types in which the backend can store activations: float32 and possibly bfloat16.
std::vector<ActivationType> StoredTypes(const Backend& backend);

}  // namespace ckplan
