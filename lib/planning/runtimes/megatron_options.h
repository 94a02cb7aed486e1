// What Megatron-LM's options can recompute, as options of one unit:
//
//   --recompute-granularity full --recompute-method uniform    chunks of n layers
//   --recompute-granularity full --recompute-method block      each of the first n layers
//   --recompute-granularity selective --recompute-modules M    these modules of every layer
//
// Modules of a layer are recognized by their names, as in most models:
//   layernorm  parts named "norm" or "ln" whose results other parts read. Their results are
//              discarded too (Rerun::kDiscarded).
//   core_attn  the operations of an attention without its projections: from its first to its last
//              product.
//   mlp, moe   parts with these or similar names.
// A set of modules is an option if every layer has them.
#pragma once

#include <vector>

#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/region_class.h"

namespace ckplan {

RegionClass::Unit MegatronUnit(const std::vector<const Block*>& layers, RegionCollector& regions);

}  // namespace ckplan
