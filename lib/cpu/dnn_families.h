// The operators of neural networks proper, by family, as families.h has the others.
#pragma once

#include <span>

#include "lib/cpu/registry.h"

namespace ckplan::cpu {

std::span<const OpRow> ConvOps();
std::span<const OpRow> BatchNormOps();
std::span<const OpRow> PoolOps();
std::span<const OpRow> MatMulOps();
std::span<const OpRow> SoftmaxOps();
std::span<const OpRow> LayerNormOps();
std::span<const OpRow> GroupNormOps();
std::span<const OpRow> LrnOps();
std::span<const OpRow> LstmOps();
std::span<const OpRow> GruOps();
std::span<const OpRow> AttentionOps();
std::span<const OpRow> EinsumOps();
std::span<const OpRow> MeanVarianceNormOps();

}  // namespace ckplan::cpu
