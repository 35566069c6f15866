#include "control/kept_seed.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::control {

using launch::Reach;

namespace {

constexpr std::array<std::pair<Reach, std::string_view>, 3> kReaches{
    {{Reach::kLoopback, "loopback"}, {Reach::kNames, "names"}, {Reach::kHosts, "hosts"}}};

}  // namespace

std::string to_text(const KeptSeed& kept) {
  const auto reach = std::find_if(kReaches.begin(), kReaches.end(),
                                  [&](const auto& known) { return known.first == kept.reach; });
  return std::string(reach->second) + " " + launch::to_text(kept.seed);
}

std::optional<KeptSeed> kept_seed_of(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto reach = std::find_if(kReaches.begin(), kReaches.end(), [&](const auto& known) {
    return known.second == text.substr(0, space);
  });
  const auto seed = launch::seed_of(text.substr(space + 1));
  if (reach == kReaches.end() || !seed) return std::nullopt;
  return KeptSeed{.seed = *seed, .reach = reach->first};
}

std::string seal_name(const job::Job& job) {
  return "gang " + job.id + "/" + std::to_string(job.attempt);
}

}  // namespace muster::control
