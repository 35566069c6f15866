// The randomness of an attempt, and how it is kept.
#include "base/base64.h"
#include "launch/plan.h"

namespace muster::launch {

namespace {

/// Calls with each part of a seed, in the order in which they are kept.
template <typename Seed, typename Use>
void for_each_part(Seed& seed, Use use) {
  use(seed.client_key);
  use(seed.host_key);
  use(seed.rendezvous_key);
  use(seed.network);
  use(seed.rsh_key);
}

}  // namespace

GangSeed make_seed(base::RandomSource& random) {
  GangSeed seed;
  for_each_part(seed, [&](auto& part) { random.fill(part); });
  return seed;
}

std::string to_text(const GangSeed& seed) {
  std::string bytes;
  for_each_part(seed, [&](const auto& part) { bytes.append(part.begin(), part.end()); });
  return base::to_base64(bytes);
}

std::optional<GangSeed> seed_of(std::string_view text) {
  const auto bytes = base::from_base64(text);
  if (!bytes) return std::nullopt;
  GangSeed seed;
  size_t size = 0;
  for_each_part(seed, [&](const auto& part) { size += part.size(); });
  if (bytes->size() != size) return std::nullopt;
  size_t at = 0;
  for_each_part(seed, [&](auto& part) {
    for (uint8_t& byte : part) byte = static_cast<uint8_t>((*bytes)[at++]);
  });
  return seed;
}

}  // namespace muster::launch
