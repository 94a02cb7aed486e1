#include "lib/problem/cost/link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "devices_json.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

using LinkJson = nlohmann::json;

constexpr std::string_view kLinkForm = "LINK[:OUT[/IN]][,half][,latency=NS]";
constexpr int64_t kBytesInGigabyte = 1'000'000'000;
constexpr int kRateDigits = 9;  // Decimal places of a rate in GB/s.

Error LinkError(std::string_view text, std::string_view why) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("\"{}\" is not a link: {}; write {}, with rates in GB/s",
                               text.substr(0, 80), why, kLinkForm));
}

std::optional<int64_t> ParseInt(std::string_view text, int64_t max) {
  int64_t number = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = fault == std::errc() && rest == text.data() + text.size();
  return is_whole && number >= 0 && number <= max ? std::optional(number) : std::nullopt;
}

// Converts "25" or "26.775" GB/s to bytes per second, exactly.
std::optional<int64_t> ParseRate(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const auto whole = ParseInt(text.substr(0, point), kMaxLinkRate / kBytesInGigabyte);
  std::string_view decimals = text.substr(std::min(point + 1, text.size()));
  const bool has_point = point < text.size();
  if (!whole || (has_point && decimals.empty()) || decimals.size() > kRateDigits) {
    return std::nullopt;
  }
  std::string padded(decimals);
  padded.resize(kRateDigits, '0');
  const auto part = ParseInt(padded, kBytesInGigabyte);
  if (!part) return std::nullopt;
  const int64_t rate = *whole * kBytesInGigabyte + *part;
  return rate >= 1 && rate <= kMaxLinkRate ? std::optional(rate) : std::nullopt;
}

std::string RateText(int64_t bytes_per_second) {
  std::string text = fmt::format("{}.{:09}", bytes_per_second / kBytesInGigabyte,
                                 bytes_per_second % kBytesInGigabyte);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Result<LinkPreset> FindLink(std::string_view name) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<LinkPreset> links, ListLinks());
  std::vector<std::string_view> names;
  for (const LinkPreset& link : links) {
    if (link.name == name) return link;
    names.push_back(link.name);
  }
  const std::string hint = DidYouMean(name, names);
  return MakeError(ErrorCode::kUsage,
                   fmt::format("no link is named \"{}\"{} the links are {}", name.substr(0, 80),
                               hint.empty() ? ";" : hint, fmt::join(names, ", ")));
}

// Removes the part of `text` up to and including the separator, and returns it without the
// separator.
std::string_view Take(std::string_view* text, char separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

Result<Done> ReadRates(std::string_view rates, std::string_view text, Link* link) {
  const bool has_two = rates.find('/') != std::string_view::npos;
  const auto out = ParseRate(Take(&rates, '/'));
  const auto in = has_two ? ParseRate(rates) : out;
  if (!out || !in) {
    return LinkError(text, "its rates must be decimal numbers above 0 and at most 1000000");
  }
  link->out_bytes_per_second = *out;
  link->in_bytes_per_second = *in;
  return Done{};
}

Result<Done> ReadOption(std::string_view option, std::string_view text, Link* link) {
  constexpr std::string_view kLatency = "latency=";
  if (option == NameOf(Duplex::kHalf)) {
    link->duplex = Duplex::kHalf;
    return Done{};
  }
  if (option == NameOf(Duplex::kFull)) {
    link->duplex = Duplex::kFull;
    return Done{};
  }
  if (!option.starts_with(kLatency)) {
    return LinkError(text, fmt::format("\"{}\" is not half, full or latency=NS", option));
  }
  const auto latency = ParseInt(option.substr(kLatency.size()), kMaxLatency);
  if (!latency)
    return LinkError(text, "its latency must be a number of nanoseconds, at most a second");
  link->latency_ns = *latency;
  return Done{};
}

}  // namespace

Cost Link::TimeOf(CopyWay way, Bytes bytes) const {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  const int64_t divisor = rate(way);
  if (bytes.count() < (int64_t{1} << 33)) {  // The common case: fits 64 bits.
    return Cost((bytes.count() * kNanoseconds + divisor - 1) / divisor + latency_ns);
  }
  // Graphs limit bytes to about 2^60, so the product with 1e9 has up to 90 bits.
  const __int128 product = static_cast<__int128>(bytes.count()) * kNanoseconds;
  const __int128 time = (product + divisor - 1) / divisor + latency_ns;
  return Cost(static_cast<int64_t>(std::min<__int128>(time, kLongestCopy.count())));
}

Link Link::AtPercent(int64_t percent) const {
  const auto part = [&](int64_t rate) {
    return std::max<int64_t>(1, rate / 100 * percent + rate % 100 * percent / 100);
  };
  Link slower = *this;
  slower.out_bytes_per_second = part(out_bytes_per_second);
  slower.in_bytes_per_second = part(in_bytes_per_second);
  return slower;
}

Link LinkPreset::Default() const {
  const auto nominal = static_cast<int64_t>(std::llround(bytes_per_second));
  Link link = Link{name, nominal, nominal, latency_ns}.AtPercent(kDefaultLinkPercent);
  if (device_bytes_per_second == 0) return link;
  // Adds the link's and the memory's time per byte, 1 / (1 / rate + 1 / memory), and rounds down to
  // whole megabytes per second.
  constexpr __int128 kMegabyte = 1'000'000;
  const auto memory = static_cast<__int128>(std::llround(device_bytes_per_second));
  const __int128 rate = link.out_bytes_per_second;
  link.out_bytes_per_second =
      static_cast<int64_t>(rate * memory / (rate + memory) / kMegabyte * kMegabyte);
  link.in_bytes_per_second = link.out_bytes_per_second;
  return link;
}

Result<std::vector<LinkPreset>> ReadLinks(std::string_view json) {
  std::vector<LinkPreset> links;
  try {
    const LinkJson document = LinkJson::parse(json);
    for (const LinkJson& row : document.at("links")) {
      links.push_back({row.at("name").get<std::string>(), row.at("description").get<std::string>(),
                       row.at("bytes_per_second").get<double>(),
                       row.at("latency_ns").get<int64_t>(),
                       row.value("device_bytes_per_second", 0.0)});
      const LinkPreset& link = links.back();
      const bool is_rate = link.bytes_per_second >= 2 &&
                           link.bytes_per_second <= static_cast<double>(kMaxLinkRate) &&
                           (link.device_bytes_per_second == 0 ||
                            (link.device_bytes_per_second >= link.bytes_per_second &&
                             link.device_bytes_per_second <= static_cast<double>(kMaxLinkRate)));
      const bool is_latency = link.latency_ns >= 0 && link.latency_ns <= kMaxLatency;
      const auto same = std::count_if(links.begin(), links.end(), [&](const LinkPreset& other) {
        return other.name == link.name;
      });
      if (!link.name.empty() && is_rate && is_latency && same == 1) continue;
      throw LinkJson::other_error::create(500, "a link needs a unique name, a rate and a latency",
                                          &row);
    }
  } catch (const LinkJson::exception& fault) {
    return MakeError(
        ErrorCode::kInternal,
        fmt::format("lib/problem/cost/devices.json, built into this program, is damaged: {}; "
                    "please report it",
                    fault.what()));
  }
  return links;
}

Result<std::vector<LinkPreset>> ListLinks() { return ReadLinks(kDevicesJson); }

Result<Link> ParseLink(std::string_view text) {
  std::string_view options = text;
  std::string_view rates = Take(&options, ',');
  const bool has_options = rates.size() < text.size();
  const bool has_rates = rates.find(':') != std::string_view::npos;
  CKPLAN_ASSIGN_OR_RETURN(const LinkPreset preset, FindLink(Take(&rates, ':')));
  Link link = preset.Default();
  if (has_rates) CKPLAN_RETURN_IF_ERROR(ReadRates(rates, text, &link));
  for (bool has_more = has_options; has_more;) {
    has_more = options.find(',') != std::string_view::npos;
    CKPLAN_RETURN_IF_ERROR(ReadOption(Take(&options, ','), text, &link));
  }
  return link;
}

std::string TextOf(const Link& link) {
  std::string text = fmt::format("{}:{}/{}", link.name, RateText(link.out_bytes_per_second),
                                 RateText(link.in_bytes_per_second));
  if (link.duplex == Duplex::kHalf) text += ",half";
  const Result<LinkPreset> preset = FindLink(link.name);
  if (!preset.ok() || preset->latency_ns != link.latency_ns) {
    text += fmt::format(",latency={}", link.latency_ns);
  }
  return text;
}

}  // namespace ckplan
