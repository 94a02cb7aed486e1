#include "lib/reference/reference.h"

namespace ckplan::reference {

Function FindFunction(std::string_view type) {
  for (const auto list : {UnaryFunctions(), BinaryFunctions(), ReduceFunctions(), MoveFunctions(),
                          GenerateFunctions(), ResizeFunctions(), GatherFunctions(),
                          RotaryFunctions(), LossFunctions(), ConvFunctions(), NormFunctions(),
                          MatMulFunctions(), RecurrentFunctions(), AttentionFunctions()}) {
    for (const FunctionRow& row : list) {
      if (row.type == type) return row.function;
    }
  }
  return nullptr;
}

}  // namespace ckplan::reference
