#include "cli/ckplan/accounting_text.h"

#include <fmt/format.h>

#include <vector>

#include "lib/base/text.h"

namespace ckplan {
namespace {

void AddLines(const std::vector<MemoryLine>& lines, const ByteUnit& unit, TextTable* table) {
  for (const MemoryLine& line : lines) {
    table->rows.push_back(
        {line.name, AmountIn(unit, line.bytes), std::string(NameOf(line.kind)), line.source});
  }
}

}  // namespace

TextTable AccountingTable(const Accounting& accounting, const std::string& title) {
  const ByteUnit unit = UnitOf(accounting.need());
  TextTable table;
  table.columns = {
      {title}, {unit.name, true}, {"kind"}, {"source", false, TableColumn::Fit::kWrap, 1}};
  AddLines(accounting.tensors, unit, &table);
  table.rows.push_back({"tensors", AmountIn(unit, accounting.tensor_bytes()), "", ""});
  AddLines(accounting.outside, unit, &table);
  table.rows.push_back({"outside", AmountIn(unit, accounting.outside_bytes()), "", ""});
  table.rows.push_back({"need", AmountIn(unit, accounting.need()), "", ""});
  return table;
}

std::string FitLine(const Accounting& accounting, const Budget& memory,
                    std::optional<double> added_share) {
  const Bytes need = accounting.need();
  if (need > memory.bytes) {
    return fmt::format("doesn't fit: it needs {} of {}", HumanBytes(need), MemoryText(memory));
  }
  const std::string spare =
      fmt::format("{} of {} to spare", HumanBytes(memory.bytes - need), MemoryText(memory));
  if (!added_share) return fmt::format("fits as it is, {}", spare);
  // A plan of a joint graph may leave out what nothing needs.
  if (*added_share <= 0) return fmt::format("fits with a plan, no slower, {}", spare);
  return fmt::format("fits with a plan, {:.1f} % slower, {}", 100 * *added_share, spare);
}

std::string MemoryText(const Budget& memory) {
  const std::string size = HumanBytes(memory.bytes);
  return memory.device.empty() ? size : fmt::format("{} ({})", size, memory.device);
}

}  // namespace ckplan
