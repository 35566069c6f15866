#include "dialects/runai/age.h"

#include <cstdint>

namespace muster::dialects::runai {

std::string age_words(std::chrono::nanoseconds age) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  constexpr int64_t kYear = 365 * kDay;
  if (seconds < kMinute) return std::to_string(seconds) + "s";
  if (seconds < kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < kDay) return std::to_string(seconds / kHour) + "h";
  if (seconds < kYear) return std::to_string(seconds / kDay) + "d";
  return std::to_string(seconds / kYear) + "y";
}

std::string age_of(const job::Job& job, base::Time now) {
  return age_words(now - job.submitted);
}

std::string age_of(const job::Job& job, const job::Task& task, base::Time now) {
  return age_words(now - task.started.value_or(job.submitted));
}

std::string duration_of(const job::Job& job, base::Time now) {
  if (!job.started) return "0s";
  return age_words(job.ended.value_or(now) - *job.started);
}

}  // namespace muster::dialects::runai
