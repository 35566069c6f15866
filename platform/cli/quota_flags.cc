#include "cli/quota_flags.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.h"
#include "base/units.h"

namespace muster::cli {

namespace {

using Amount = api::ShareChange::Amount;

constexpr std::string_view kUnlimited = "unlimited";
/// Of --gpus: those that no other project was promised.
constexpr std::string_view kRest = "rest";

using Parser = base::Result<int64_t> (*)(std::string_view);

/// Nothing where the flag is not given; within it, nothing where it says "unlimited".
Amount read_amount(const std::string& flag, Parser parse, FlagReader& reader) {
  if (!reader.has(flag)) return std::nullopt;
  if (reader.text(flag) == kUnlimited) return Amount(std::in_place, std::nullopt);
  const auto amount = parse(reader.text(flag));
  if (amount) return Amount(std::in_place, *amount);
  reader.fault(flag, amount.error().what + ", nor unlimited");
  return std::nullopt;
}

std::optional<double> read_weight(FlagReader& reader) {
  if (!reader.has("--weight")) return std::nullopt;
  const std::string text = reader.text("--weight");
  const auto weight = base::number_of<double>(text);
  if (weight && std::isfinite(*weight) && *weight >= 0) return weight;
  reader.fault("--weight", "'" + text + "' is not a weight such as 1, 2.5 or 0");
  return std::nullopt;
}

api::QuotaChange read_quota(FlagReader& reader) {
  api::QuotaChange quota;
  const bool has_rest = reader.text("--gpus") == kRest;
  quota.deserved = {
      .gpu_milli = has_rest ? Amount() : read_amount("--gpus", base::parse_milli, reader),
      .cpu_milli = read_amount("--cpus", base::parse_cpus, reader),
      .memory_bytes = read_amount("--memory", base::parse_bytes, reader)};
  if (reader.has("--limit") && reader.has("--limit-gpus")) {
    reader.fault("--limit", "is the same as --limit-gpus; give one of them");
  }
  quota.limit = {.gpu_milli = read_amount(reader.has("--limit") ? "--limit" : "--limit-gpus",
                                          base::parse_milli, reader),
                 .cpu_milli = read_amount("--limit-cpus", base::parse_cpus, reader),
                 .memory_bytes = read_amount("--limit-memory", base::parse_bytes, reader)};
  quota.weight = read_weight(reader);
  return quota;
}

std::optional<std::chrono::milliseconds> read_duration(const std::string& flag,
                                                       FlagReader& reader) {
  if (!reader.has(flag)) return std::nullopt;
  return reader.duration(flag, {});
}

}  // namespace

api::ProjectChange read_project_flags(FlagReader& reader) {
  api::ProjectChange change;
  if (reader.has("--parent")) change.parent = reader.text("--parent");
  if (reader.has("--priority")) change.priority = reader.number("--priority", 0);
  change.reclaim_min_runtime = read_duration("--reclaim-min-runtime", reader);
  change.preempt_min_runtime = read_duration("--preempt-min-runtime", reader);
  const api::QuotaChange quota = read_quota(reader);
  const std::vector<std::string> pools = reader.texts("--pool");
  if (reader.has("--gpus") && pools.empty()) {
    change.takes_the_rest = reader.text("--gpus") == kRest;
  } else if (reader.has("--gpus") && reader.text("--gpus") == kRest) {
    reader.fault("--gpus", "'rest' is for all node pools; leave out --pool");
  }
  if (pools.empty()) change.quota = quota;
  for (const std::string& pool : pools) change.pools[pool] = quota;
  if (!pools.empty() && quota == api::QuotaChange{} && reader.ok()) {
    reader.fault("--pool", "goes with --gpus, --limit, --weight ...: what is different there");
  }
  change.removed_pools = reader.texts("--no-pool");
  for (const std::string& pool : change.removed_pools) {
    if (change.pools.contains(pool)) {
      reader.fault("--no-pool", "'" + pool + "' is given a quota by --pool, too");
    }
  }
  return change;
}

}  // namespace muster::cli
