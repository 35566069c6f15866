#include "schedule/usual_claims.h"

#include <algorithm>

namespace muster::schedule {

namespace {

constexpr size_t kMostClaims = 64;
constexpr double kForgetting = 0.999;  // a gang weighs half after about 700 others
constexpr double kRescaleAt = 1e12;
constexpr int kMostBetweenTellings = 256;

bool asks_the_same(const UsualClaim& usual, const Claim& claim, const Gang& gang) {
  return usual.claim == claim && usual.gpu_models == gang.gpu_models;
}

}  // namespace

void UsualClaims::add(const Gang& gang) {
  // Newer ones weigh more and more, instead of the older ones less and less.
  weight_of_next_ /= kForgetting;
  for (const TaskGroup& group : gang.groups) {
    const double weight = weight_of_next_ * std::max(group.count, 1);
    const auto known = std::find_if(claims_.begin(), claims_.end(), [&](const UsualClaim& usual) {
      return asks_the_same(usual, group.claim, gang);
    });
    if (known != claims_.end()) {
      known->weight += weight;
      continue;
    }
    if (claims_.size() >= kMostClaims) {
      claims_.erase(std::min_element(claims_.begin(), claims_.end(),
                                     [](const UsualClaim& left, const UsualClaim& right) {
                                       return left.weight < right.weight;
                                     }));
    }
    claims_.push_back({.claim = group.claim, .gpu_models = gang.gpu_models, .weight = weight});
  }
  ++added_;
  if (weight_of_next_ < kRescaleAt) return;
  for (UsualClaim& usual : claims_) usual.weight /= weight_of_next_;
  weight_of_next_ = 1;
}

bool UsualClaims::is_worth_telling() const {
  return added_ > 0 && added_ >= std::min(told_ / 8, kMostBetweenTellings);
}

std::vector<UsualClaim> UsualClaims::tell() {
  told_ = std::min(told_ + added_, kMostBetweenTellings * 8);
  added_ = 0;
  std::vector<UsualClaim> told = claims_;
  double sum = 0;
  for (const UsualClaim& usual : told) sum += usual.weight;
  for (UsualClaim& usual : told) usual.weight /= sum;
  return told;
}

}  // namespace muster::schedule
