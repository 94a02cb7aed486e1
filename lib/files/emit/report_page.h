// The report's page without its data, compiled into the program from lib/files/emit/report.
#pragma once

#include <string_view>

namespace ckplan {

// The HTML has the places {{title}}, {{style}}, {{data}} and {{script}}.
std::string_view ReportHtml();
std::string_view ReportStyle();
std::string_view ReportScript();

}  // namespace ckplan
