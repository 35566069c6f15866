#include "session/autotune.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace muster::collective::session {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string line_of(std::uint64_t fusion_bytes, int steps, std::uint64_t bytes, double seconds,
                    double rate, bool chosen) {
  std::array<char, 160> text = {};
  std::snprintf(text.data(), text.size(), "%llu,%d,%llu,%.6f,%.0f,%d\n",
                static_cast<unsigned long long>(fusion_bytes), steps,
                static_cast<unsigned long long>(bytes), seconds, rate, chosen ? 1 : 0);
  return text.data();
}

}  // namespace

Autotune::Autotune(std::vector<std::uint64_t> fusion_bytes, int steps, int rounds)
    : steps_(steps), rounds_(rounds) {
  for (const std::uint64_t bytes : fusion_bytes) candidates_.push_back({bytes});
}

// An entry has news if its name comes for the first time (protocol.h). The first repeated name is
// the marker: a step begins each time it comes.
bool Autotune::begins_step(const Batch& batch) {
  for (const Entry& entry : batch.entries) {
    if (!marker_ && !entry.news) marker_ = entry.id;
    if (marker_ == entry.id) return true;
  }
  return false;
}

bool Autotune::on_batch(const Batch& batch, std::uint64_t bytes, Deadline now) {
  if (done_) return false;
  if (begins_step(batch)) {
    ++step_;
    if (step_ == 1) begun_ = now;
    if (step_ == 1 + steps_) {
      end_of_try(now);
      return true;
    }
  }
  if (step_ >= 1) bytes_ += bytes;
  return false;
}

void Autotune::end_of_try(Deadline now) {
  Candidate& candidate = candidates_[at_];
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - begun_).count());
  const double rate = static_cast<double>(bytes_) / seconds;
  candidate.rates.push_back(rate);
  log_ += line_of(candidate.fusion_bytes, steps_, bytes_, seconds, rate, false);
  step_ = 0;  // this batch begins the next warm-up
  bytes_ = 0;
  at_ = (at_ + 1) % candidates_.size();
  if (at_ != 0 || ++round_ < rounds_) return;
  at_ = best();
  done_ = true;
  log_ += line_of(current(), steps_, 0, 0, median_of(candidates_[at_].rates), true);
}

std::size_t Autotune::best() const {
  const auto rate = [](const Candidate& candidate) { return median_of(candidate.rates); };
  const auto found = std::ranges::max_element(candidates_, {}, rate);
  return static_cast<std::size_t>(found - candidates_.begin());
}

std::string Autotune::take_log() {
  return std::exchange(log_, {});
}

}  // namespace muster::collective::session
