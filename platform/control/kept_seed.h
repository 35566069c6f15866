// What a later server needs to plan workers that join a gang: the secrets of its attempt, and how
// its tasks reach each other, which was settled when it started.
//
// Pure. The text is a secret: it is kept sealed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "job/job.h"
#include "launch/plan.h"

namespace muster::control {

struct KeptSeed {
  launch::GangSeed seed;
  launch::Reach reach = launch::Reach::kLoopback;
};

std::string to_text(const KeptSeed& kept);
std::optional<KeptSeed> kept_seed_of(std::string_view text);

/// What it is sealed as: one of another attempt opens for nobody. No secret is called like that.
std::string seal_name(const job::Job& job);

}  // namespace muster::control
