#include "job/declared_gpus.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"

namespace muster::job {

namespace {

using base::Fault;

/// The parts between colons; unlike base::split(), empty ones too.
std::vector<std::string_view> declared_parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

std::optional<Fault> read_declared_count(std::string_view text, int& count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc{} && end == text.data() + text.size() && count >= 0 &&
      count <= kMostDeclaredGpus) {
    return std::nullopt;
  }
  return Fault{.field = "count",
               .what = base::single_quoted(text) + " is not a number of GPUs from 0 to " +
                       std::to_string(kMostDeclaredGpus)};
}

std::optional<Fault> read_declared_model(std::string_view text, std::string& model) {
  constexpr size_t kLongest = 96;  // NVML's own bound
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (text.empty() || text.size() > kLongest || !printable) {
    return Fault{.field = "model",
                 .what = base::single_quoted(text) + " is not a GPU model: give 1 to " +
                         std::to_string(kLongest) + " printable characters"};
  }
  model = text;
  return std::nullopt;
}

std::optional<Fault> read_declared_memory(std::string_view text, int64_t& bytes) {
  const auto parsed = base::parse_bytes(text);
  if (parsed && *parsed > 0) {
    bytes = *parsed;
    return std::nullopt;
  }
  return Fault{.field = "memory",
               .what = base::single_quoted(text) + " is not a size such as 16G or 80G"};
}

}  // namespace

base::Result<DeclaredGpus> parse_declared_gpus(std::string_view text) {
  const std::vector<std::string_view> parts = declared_parts_of(text);
  DeclaredGpus declared;
  std::vector<Fault> faults;
  const auto keep = [&](std::optional<Fault> fault) {
    if (fault) faults.push_back(*std::move(fault));
  };
  keep(read_declared_count(parts[0], declared.count));
  if (parts.size() > 1) keep(read_declared_model(parts[1], declared.model));
  if (parts.size() > 2) keep(read_declared_memory(parts[2], declared.memory_bytes));
  if (parts.size() > 3) {
    keep(Fault{.field = "", .what = "has more than three parts"});
  }
  if (faults.empty()) return declared;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = base::single_quoted(text) + " does not declare GPUs",
                     .advice = "write N[:MODEL[:MEMORY]], as in 2 or 8:A100:80G",
                     .faults = std::move(faults)};
}

}  // namespace muster::job
