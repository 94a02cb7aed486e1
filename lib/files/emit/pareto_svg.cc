#include "lib/files/emit/pareto_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/text.h"

namespace ckplan {

std::string SvgPage(int64_t width, int64_t height, std::string_view light, std::string_view dark) {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}">
<style>
text {{ font: 13px sans-serif; fill: #222222; }}
.head {{ font-weight: bold; }}
.end {{ text-anchor: end; }}
.middle {{ text-anchor: middle; }}
.paper {{ fill: #ffffff; }}
.grid {{ stroke: #999999; stroke-opacity: 0.4; }}
{2}@media (prefers-color-scheme: dark) {{
text {{ fill: #dddddd; }}
.paper {{ fill: #1c1c1c; }}
{3}}}
</style>
<rect class="paper" width="{0}" height="{1}"/>
)",
      width, height, light, dark);
}

namespace {

// Narrow with large text: shown 400 pixels wide, the text is still larger than eleven pixels.
constexpr int64_t kParetoWidth = 560;
constexpr int64_t kMargin = 10;
constexpr int64_t kParetoLeft = 72;  // The left edge of the plot.
constexpr int64_t kParetoTop = 66;
constexpr int64_t kParetoPlotWidth = 454;
constexpr int64_t kParetoPlotHeight = 300;
constexpr int64_t kParetoBottom = kParetoTop + kParetoPlotHeight;
constexpr int64_t kLegendTop = 70;  // Below the plot.
constexpr int64_t kLegendLine = 24;
constexpr int64_t kTicks = 5;
constexpr size_t kLongestParetoLabel = 52;

// Okabe and Ito's colours without black and yellow.
constexpr std::array<std::string_view, 6> kColours = {"#0072B2", "#D55E00", "#009E73",
                                                      "#CC79A7", "#E69F00", "#56B4E9"};
// Paths centred on the origin.
constexpr std::array<std::string_view, 4> kMarks = {"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                                                    "M-4 -4h8v8h-8z", "M0 -5l5 9h-10z",
                                                    "M0 -5l5 5l-5 5l-5 -5z"};

constexpr std::string_view kStyles = R"(svg { max-width: 100%; height: auto; }
text { font-size: 16px; }
.line { fill: none; stroke-width: 1.6; }
)";

double OverheadShare(const ParetoLine& line, const CurvePoint& point) {
  if (line.step <= Cost(0)) return 0;
  return static_cast<double>(point.overhead.count()) / static_cast<double>(line.step.count());
}

// Returns 1, 2 or 5 times a power of ten, so that an axis up to `max` has at most kTicks ticks
// above 0.
double TickDistance(double max) {
  const double min_distance = max / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(min_distance)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= min_distance) return factor * power;
  }
  return 10 * power;
}

// Formats a round size: "500 MiB", "0.5 GiB".
std::string TickText(Bytes bytes) {
  if (bytes == Bytes(0)) return "0";
  const ByteUnit unit = UnitOf(bytes);
  return fmt::format("{:.3g} {}", std::ldexp(static_cast<double>(bytes.count()), -unit.shift),
                     unit.name);
}

class ParetoPicture {
 public:
  explicit ParetoPicture(std::span<const ParetoLine> lines) : lines_(lines) {
    for (const ParetoLine& line : lines) {
      max_bytes_ = std::max(max_bytes_, line.baseline_peak.count());
      for (const CurvePoint& point : line.points) {
        max_bytes_ = std::max(max_bytes_, point.peak.count());
        max_share_ = std::max(max_share_, OverheadShare(line, point));
      }
    }
  }

  std::string Draw(const std::string& title) {
    const int64_t height =
        kParetoBottom + kLegendTop + kLegendLine * static_cast<int64_t>(lines_.size());
    svg_ = SvgPage(kParetoWidth, height, kStyles, "");
    Text(kMargin, 24, "head", title);
    DrawAxes();
    for (size_t i = 0; i < lines_.size(); ++i) DrawLine(i);
    return svg_ + "</svg>\n";
  }

 private:
  void Text(int64_t x, int64_t y, std::string_view style, std::string_view text) {
    svg_ +=
        fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, style, Label(text));
  }

  static std::string Label(std::string_view text) {
    return XmlText(Printable(text, kLongestParetoLabel));
  }

  int64_t XOf(int64_t bytes) const {
    return kParetoLeft + static_cast<int64_t>(static_cast<double>(bytes) /
                                              static_cast<double>(max_bytes_) * kParetoPlotWidth);
  }
  int64_t YOf(double share) const {
    return kParetoBottom - static_cast<int64_t>(share / max_share_ * kParetoPlotHeight);
  }

  void DrawAxes() {
    const double unit =
        std::pow(1024.0, std::floor(std::log2(static_cast<double>(max_bytes_)) / 10));
    const double bytes_step = TickDistance(static_cast<double>(max_bytes_) / unit) * unit;
    for (int64_t i = 0; static_cast<double>(i) * bytes_step <= static_cast<double>(max_bytes_);
         ++i) {
      const auto bytes = static_cast<int64_t>(static_cast<double>(i) * bytes_step);
      svg_ += fmt::format(R"svg(<path class="grid" d="M{} {}V{}"/>
)svg",
                          XOf(bytes), kParetoTop, kParetoBottom);
      Text(XOf(bytes), kParetoBottom + 20, "middle", TickText(Bytes(bytes)));
    }
    const double percent_step = TickDistance(100 * max_share_);
    for (int64_t i = 0; static_cast<double>(i) * percent_step <= 100 * max_share_; ++i) {
      const double percent = static_cast<double>(i) * percent_step;
      svg_ += fmt::format(R"svg(<path class="grid" d="M{} {}H{}"/>
)svg",
                          kParetoLeft, YOf(percent / 100), kParetoLeft + kParetoPlotWidth);
      Text(kParetoLeft - 6, YOf(percent / 100) + 5, "end",
           percent == 0 ? "0%" : fmt::format("+{:g}%", percent));
    }
    Text(kParetoLeft + kParetoPlotWidth, kParetoBottom + 42, "end", "peak of activations");
    Text(kMargin, kParetoTop - 14, "", "time added to a step");
  }

  void DrawLine(size_t number) {
    const ParetoLine& line = lines_[number];
    const std::string_view colour = kColours[number % kColours.size()];
    const std::string_view mark = kMarks[number % kMarks.size()];
    const int64_t legend_y =
        kParetoBottom + kLegendTop + kLegendLine * static_cast<int64_t>(number);
    std::string path;
    for (const CurvePoint& point : line.points) {
      const int64_t x = XOf(point.peak.count());
      const int64_t y = YOf(OverheadShare(line, point));
      path += path.empty() ? fmt::format("M{} {}", x, y) : fmt::format("H{}V{}", x, y);
    }
    if (!path.empty()) {
      svg_ += fmt::format(R"svg(<path class="line" stroke="{}" d="{}H{}"/>
)svg",
                          colour, path, kParetoLeft + kParetoPlotWidth);
    }
    for (const CurvePoint& point : line.points) {
      Mark(XOf(point.peak.count()), YOf(OverheadShare(line, point)), colour, mark,
           fmt::format("{}: {}, +{:.2f}%", line.name, HumanBytes(point.peak),
                       100 * OverheadShare(line, point)));
    }
    Mark(kMargin + 6, legend_y - 5, colour, mark, line.name);
    Text(kMargin + 20, legend_y, "", line.name);
  }

  void Mark(int64_t x, int64_t y, std::string_view colour, std::string_view mark,
            std::string_view title) {
    svg_ += fmt::format(
        R"svg(<path transform="translate({} {})" fill="{}" d="{}"><title>{}</title></path>
)svg",
        x, y, colour, mark, XmlText(Printable(title, kLongestName)));
  }

  std::span<const ParetoLine> lines_;
  int64_t max_bytes_ = 1;
  double max_share_ = 0.01;  // Above zero, so that a curve with a single point at 0 can be drawn.
  std::string svg_;
};

}  // namespace

std::string WriteParetoSvg(const std::string& title, std::span<const ParetoLine> lines) {
  return ParetoPicture(lines).Draw(title);
}

}  // namespace ckplan
