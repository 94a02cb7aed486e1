#include "lib/reference/op_case.h"

namespace ckplan::reference {

int CountCases(std::string_view type) {
  int count = 0;
  for (const auto family :
       {UnaryCases(), BinaryCases(), ReduceCases(), MoveCases(), GenerateCases(), ResizeCases(),
        GatherCases(), RotaryCases(), LossCases(), ConvCases(), NormCases(), MatMulCases(),
        RecurrentCases(), AttentionCases()}) {
    for (const CaseRow& row : family) {
      if (row.type.substr(0, row.type.find('@')) == type) ++count;
    }
  }
  return count;
}

}  // namespace ckplan::reference
