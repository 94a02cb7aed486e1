// Links over which values are copied to the memory of the host and back.
//
//   pcie4            a preset of devices.json, at 85 % of its nominal rate; c2c has less, since its
//                    copies take the bandwidth of the device's memory
//   pcie4:25         25 GB/s each way
//   c2c:400/380      400 GB/s out, 380 GB/s in
//   pcie4:25,half    one link for both ways, which takes one copy at a time
//   pcie4,latency=20000   20 us for each copy, in addition to its bytes
//
// Copies reach a part of the nominal rate, and a plan whose copies are late waits for them; hence
// the default. A copy of b bytes takes latency_ns + ceil(b * 1e9 / rate) nanoseconds.
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
  kFull,  // Copies out and copies in do not share the link.
  kHalf,  // One copy at a time, in either direction.
};

inline constexpr std::string_view kDuplexWords[] = {"full", "half"};
inline std::string_view NameOf(Duplex duplex) { return kDuplexWords[static_cast<size_t>(duplex)]; }

inline constexpr int64_t kMaxLinkRate = 1'000'000'000'000'000;  // Bytes per second.
inline constexpr int64_t kMaxLatency = 1'000'000'000;           // One second, in nanoseconds.
inline constexpr Cost kLongestCopy{int64_t{1} << 60};
// Times over a link end here: a slow one with large values would otherwise exceed 64 bits.
inline constexpr Cost kLastMoment{int64_t{1} << 61};

struct Link {
  std::string name;                  // That of the preset: "pcie4".
  int64_t out_bytes_per_second = 1;  // From 1 to kMaxLinkRate, as the next.
  int64_t in_bytes_per_second = 1;
  int64_t latency_ns = 0;  // From 0 to kMaxLatency.
  Duplex duplex = Duplex::kFull;

  int64_t rate(CopyWay way) const {
    return way == CopyWay::kOut ? out_bytes_per_second : in_bytes_per_second;
  }
  // Returns how long a copy takes, in nanoseconds, but at most kLongestCopy.
  Cost TimeOf(CopyWay way, Bytes bytes) const;
  // Returns this link with `percent` percent of its rates, at least 1 byte per second.
  Link AtPercent(int64_t percent) const;

  bool operator==(const Link&) const = default;
};

// A row of the links in devices.json.
struct LinkPreset {
  std::string name;
  std::string description;
  double bytes_per_second = 0;  // In each direction, nominal.
  int64_t latency_ns = 0;
  // The bandwidth of the device's memory if copies take a part of it that counts, else 0.
  double device_bytes_per_second = 0;

  // Returns the link at kDefaultLinkPercent of the nominal rate. A copy also takes as long as the
  // device's memory is busy with its bytes: operations have to do without that time.
  Link Default() const;
};

inline constexpr int64_t kDefaultLinkPercent = 85;

// Returns all presets in the order of devices.json.
Result<std::vector<LinkPreset>> ListLinks();
// Reads the presets from the text of devices.json. kInternal: the text is damaged.
Result<std::vector<LinkPreset>> ReadLinks(std::string_view json);

// Reads a link as people type it. kUsage: the text has not the form, or no preset has the name.
Result<Link> ParseLink(std::string_view text);
// Returns the text that ParseLink reads as this link. It has the rates always.
std::string TextOf(const Link& link);

}  // namespace ckplan
