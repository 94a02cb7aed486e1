// Links over which values are copied to host memory and back.
//
//   pcie4            a preset of devices.json at 85 % of its nominal rate; c2c has less, since its
//                    copies use the bandwidth of the device's memory
//   pcie4:25         25 GB/s each way
//   c2c:400/380      400 GB/s out, 380 GB/s in
//   pcie4:25,half    both directions share the link: one copy at a time
//   pcie4,latency=20000   20 us per copy, in addition to its bytes
//
// The default is below the nominal rate, since real copies are slower and a plan has to wait for
// late copies. A copy of b bytes takes latency_ns + ceil(b * 1e9 / rate) nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

enum class CopyWay : uint8_t { kOut, kIn };  // To the host, and back to the device.

enum class Duplex : uint8_t {
  kFull,  // Each direction has its own link.
  kHalf,  // One copy at a time, in either direction.
};

inline constexpr std::string_view kDuplexWords[] = {"full", "half"};
inline std::string_view NameOf(Duplex duplex) { return kDuplexWords[static_cast<size_t>(duplex)]; }

inline constexpr int64_t kMaxLinkRate = 1'000'000'000'000'000;  // Bytes per second.
inline constexpr int64_t kMaxLatency = 1'000'000'000;           // One second, in nanoseconds.
inline constexpr Cost kLongestCopy{int64_t{1} << 60};
// Times over a link are clamped to this, since large values over a slow link would overflow.
inline constexpr Cost kLastMoment{int64_t{1} << 61};

struct Link {
  std::string name;                  // The preset's name, such as "pcie4".
  int64_t out_bytes_per_second = 1;  // This and the next: from 1 to kMaxLinkRate.
  int64_t in_bytes_per_second = 1;
  int64_t latency_ns = 0;  // From 0 to kMaxLatency.
  Duplex duplex = Duplex::kFull;

  int64_t rate(CopyWay way) const {
    return way == CopyWay::kOut ? out_bytes_per_second : in_bytes_per_second;
  }
  // Returns the time of a copy in nanoseconds, at most kLongestCopy.
  Cost TimeOf(CopyWay way, Bytes bytes) const;
  // Scales the rates to `percent` percent, but at least 1 byte per second.
  Link AtPercent(int64_t percent) const;

  bool operator==(const Link&) const = default;
};

// A row of the links in devices.json.
struct LinkPreset {
  std::string name;
  std::string description;
  double bytes_per_second = 0;  // In each direction, nominal.
  int64_t latency_ns = 0;
  // The bandwidth of the device's memory if copies use a significant part of it, otherwise 0.
  double device_bytes_per_second = 0;

  // Returns the link at kDefaultLinkPercent of the nominal rate. With device_bytes_per_second, a
  // copy also takes the time for which it keeps the device's memory busy.
  Link Default() const;
};

inline constexpr int64_t kDefaultLinkPercent = 85;

// Returns all presets in the order of devices.json.
Result<std::vector<LinkPreset>> ListLinks();
// Parses the presets in devices.json. kInternal: the text is damaged.
Result<std::vector<LinkPreset>> ReadLinks(std::string_view json);

// Parses a link in the form above. kUsage: the form is wrong, or no preset has that name.
Result<Link> ParseLink(std::string_view text);
// Formats the link for ParseLink, always with rates.
std::string TextOf(const Link& link);

}  // namespace ckplan
