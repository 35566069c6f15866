#include "notify/wish_faults.h"

#include <algorithm>

namespace muster::notify {

std::vector<base::Fault> faults_of(const Wish& wish) {
  constexpr size_t kLongestPattern = 128;
  constexpr size_t kMostLabels = 16;
  std::vector<base::Fault> faults;
  if (const auto receiver = receiver_of(wish.url); !receiver) {
    const auto* const fault = base::detail_of<UrlFault>(receiver.error());
    faults.push_back(
        {.field = "url", .what = fault == nullptr ? receiver.error().what : fault->what});
  }
  if (wish.on.empty()) faults.push_back({.field = "on", .what = "names nothing to be told of"});
  const bool is_pattern = std::all_of(wish.job.begin(), wish.job.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
           letter == '*' || letter == '?';
  });
  if (!is_pattern || wish.job.size() > kLongestPattern) {
    faults.push_back({.field = "job",
                      .what = "is no pattern of names; use at most 128 small letters, digits, '-', "
                              "'*' and '?'"});
  }
  if (wish.labels.size() > kMostLabels) {
    faults.push_back({.field = "labels", .what = "has more than 16 labels"});
  }
  return faults;
}

}  // namespace muster::notify
