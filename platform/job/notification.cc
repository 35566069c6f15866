#include "job/notification.h"

#include <algorithm>
#include <array>

#include "job/notification_table.h"

namespace muster::job {

namespace {

/// A test delivery ("ping") is neither subscribed to nor stored, so it is in no document.
constexpr std::array<record::Named<Happening>, 5> kHappeningNames{
    {{Happening::kStarted, "started"},
     {Happening::kRequeued, "requeued"},
     {Happening::kSucceeded, "succeeded"},
     {Happening::kFailed, "failed"},
     {Happening::kStopped, "stopped"}}};

}  // namespace

record::Words<Happening> words_of(const Happening*) {
  return {.schema = "Happening",
          .values = kHappeningNames,
          .help = "`requeued`: the job ran, and waits again."};
}

std::string_view to_string(Happening happening) {
  return happening == Happening::kPing ? "ping" : record::word_for(happening);
}

std::optional<Happening> happening_of(std::string_view name) {
  return record::meant_by<Happening>(name);
}

const std::vector<Happening>& all_happenings() {
  static const std::vector<Happening> all{Happening::kStarted, Happening::kRequeued,
                                          Happening::kSucceeded, Happening::kFailed,
                                          Happening::kStopped};
  return all;
}

// On a mismatch only the last '*' takes one character more: what an earlier one took is as good as
// anything else it could have, so the time is that of both lengths multiplied at most.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  for (size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', std::min(at, pattern.size())) == std::string_view::npos;
}

std::string origin_of(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  return std::string(url.substr(0, url.find_first_of("/?#", scheme + 3)));
}

}  // namespace muster::job
