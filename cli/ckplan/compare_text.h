// What `ckplan compare` prints: one model within one budget as text, Markdown and LaTeX, several of
// them in these forms, and all of them as CSV and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/compare_models.h"
#include "cli/common/terminal.h"

namespace ckplan {

// Two lines on the model: its name and sizes, and what keeping everything needs.
std::string CompareHead(const Comparison& comparison, const Terminal& terminal);

// A heading and the reasons why rows have no plan. Empty if there are none.
std::string NoPlanText(const std::vector<std::string>& reasons, const Terminal& terminal);

std::string CompareText(const Comparison& comparison, bool shows_times, const Terminal& terminal);
std::string CompareMarkdown(const Comparison& comparison);
std::string CompareLatex(const Comparison& comparison);

// A block for each model. What holds for several rows or blocks is said once.
std::string CompareSeveralText(const ComparisonSet& set, const Terminal& terminal);
std::string CompareSeveralMarkdown(const ComparisonSet& set);
// One table, with the model, its sizes and the budget where they change.
std::string CompareSeveralLatex(const ComparisonSet& set);

// One table; each row says what it is about.
std::string CompareCsv(const ComparisonSet& set);
std::string CompareJson(const ComparisonSet& set);

}  // namespace ckplan
