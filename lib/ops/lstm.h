// The shape of LSTM.
#pragma once

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"
#include "lib/ops/recurrent.h"

namespace ckplan {

using LstmShape = RecurrentShape;

Result<LstmShape> ReadLstmShape(const OpSpec& spec);

}  // namespace ckplan
