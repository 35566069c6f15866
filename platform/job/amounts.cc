#include "job/amounts.h"

#include <array>
#include <cstdlib>

namespace muster::job {

namespace {

/// With as few decimals as necessary: "2", "0.5", "1.25".
std::string decimal_text(int64_t thousandths) {
  const int64_t size = std::abs(thousandths);
  std::string text = std::to_string(size / 1000);
  if (size % 1000 != 0) {
    std::string decimals = std::to_string(1000 + size % 1000).substr(1);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += "." + decimals;
  }
  return thousandths < 0 ? "-" + text : text;
}

/// In the largest unit that is not greater than the amount, rounded to two decimals.
std::string bytes_text(int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const int64_t size = std::abs(bytes);
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && size >> (10 * (unit + 1)) != 0) ++unit;
  const int64_t whole = size >> (10 * unit);
  const int64_t rest = size - (whole << (10 * unit));
  // Two shifts: a thousand times the remainder may overflow.
  const int64_t hundredths = unit == 0 ? 0 : ((rest >> (10 * (unit - 1))) * 100 + 512) >> 10;
  const int64_t thousandths = whole * 1000 + hundredths * 10;
  return decimal_text(bytes < 0 ? -thousandths : thousandths) + " " + kUnits[unit];
}

std::string milli_text(int64_t milli, const std::string& noun) {
  if (milli >= kUnlimited) return "unlimited " + noun + "s";
  const bool one_or_less = milli > 0 && milli <= 1000;
  return decimal_text(milli) + " " + noun + (one_or_less ? "" : "s");
}

}  // namespace

std::string amount_text(Resource resource, int64_t amount) {
  switch (resource) {
    case Resource::kGpu:
      return milli_text(amount, "GPU");
    case Resource::kCpu:
      return milli_text(amount, "CPU");
    case Resource::kMemory:
      break;
  }
  return amount >= kUnlimited ? "unlimited memory" : bytes_text(amount) + " of memory";
}

std::string amounts_text(const Amounts& amounts) {
  std::vector<std::string> parts;
  for (const Resource resource : kResources) {
    if (amounts[resource] != 0) parts.push_back(amount_text(resource, amounts[resource]));
  }
  return parts.empty() ? "nothing" : listed(parts);
}

std::string claim_text(const Claim& claim) {
  std::vector<std::string> parts;
  if (claim.gpus > 0) parts.push_back(count_text(claim.gpus, "GPU"));
  if (claim.gpu_share_milli > 0) {
    parts.push_back(amount_text(Resource::kGpu, claim.gpu_share_milli));
  }
  if (claim.gpu_memory_bytes > 0) {
    parts.push_back(bytes_text(claim.gpu_memory_bytes) + " of GPU memory");
  }
  if (claim.cpu_milli > 0) parts.push_back(amount_text(Resource::kCpu, claim.cpu_milli));
  if (claim.memory_bytes > 0) parts.push_back(amount_text(Resource::kMemory, claim.memory_bytes));
  return listed(parts);
}

}  // namespace muster::job
