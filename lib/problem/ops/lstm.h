// The shape of LSTM.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan {

using LstmShape = RecurrentShape;

Result<LstmShape> ReadLstmShape(const OpSpec& spec);

}  // namespace ckplan
