// Single values of listings: times and GRES.
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "base/units.h"
#include "engine/slurm/slurm_listing.h"

namespace muster::engine::slurm {

namespace {

/// Of "2026-01-31T12:34:56" the number at `at`; nothing where there are others than digits.
std::optional<int> digits(std::string_view text, size_t at, size_t count) {
  const std::string_view part = text.substr(at, count);
  const bool is_number =
      std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? base::number_of<int>(part) : std::nullopt;
}

/// "gpu:a100:4(S:0-1)": the words between colons, without what is in brackets.
std::vector<std::string_view> gres_words(std::string_view gres) {
  gres = gres.substr(0, gres.find('('));
  std::vector<std::string_view> words;
  while (true) {
    const size_t colon = gres.find(':');
    words.push_back(gres.substr(0, colon));
    if (colon == std::string_view::npos) return words;
    gres.remove_prefix(colon + 1);
  }
}

/// Commas in brackets, "gpu:4(S:0,1)", part nothing.
std::string_view next_gres(std::string_view& list) {
  int depth = 0;
  size_t end = 0;
  while (end < list.size() && (list[end] != ',' || depth > 0)) {
    if (list[end] == '(') ++depth;
    if (list[end] == ')') --depth;
    ++end;
  }
  const std::string_view gres = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return gres;
}

/// "4", or as Slurm shortens large ones, "2K".
int count_of(std::string_view text) {
  constexpr int64_t kKilo = 1024;
  int64_t unit = 1;
  if (text.ends_with('K')) unit = kKilo;
  if (text.ends_with('M')) unit = kKilo * kKilo;
  if (unit > 1) text.remove_suffix(1);
  const int64_t count = base::number_of<int32_t>(text).value_or(0);
  return static_cast<int>(
      std::clamp<int64_t>(count * unit, 0, std::numeric_limits<int32_t>::max()));
}

}  // namespace

std::optional<base::Time> time_of(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() != kShape.size()) return std::nullopt;
  for (const size_t at : {4, 7, 10, 13, 16}) {
    if (text[at] != kShape[at]) return std::nullopt;
  }
  const auto years = digits(text, 0, 4);
  const auto months = digits(text, 5, 2);
  const auto days_in = digits(text, 8, 2);
  const auto clock = std::array{digits(text, 11, 2), digits(text, 14, 2), digits(text, 17, 2)};
  if (!years || !months || !days_in || !clock[0] || !clock[1] || !clock[2]) return std::nullopt;
  const year_month_day date{year{*years}, month{static_cast<unsigned>(*months)},
                            day{static_cast<unsigned>(*days_in)}};
  // What nanoseconds since 1970 cannot hold is no time of a job.
  if (!date.ok() || *years < 1970 || *years > 2200) return std::nullopt;
  if (*clock[0] > 23 || *clock[1] > 59 || *clock[2] > 60) return std::nullopt;
  return base::Time(sys_days(date)) + hours(*clock[0]) + minutes(*clock[1]) + seconds(*clock[2]);
}

Gpus gpus_in(std::string_view gres) {
  Gpus gpus;
  bool is_mixed = false;
  while (!gres.empty()) {
    const std::vector<std::string_view> words = gres_words(next_gres(gres));
    if (words.front() != "gpu") continue;
    const int count = words.size() == 1 ? 1 : count_of(words.back());
    const std::string_view type = words.size() > 2 ? words[1] : std::string_view();
    is_mixed = is_mixed || (gpus.count > 0 && gpus.type != type);
    gpus.type = type;
    gpus.count = static_cast<int>(
        std::min<int64_t>(int64_t{gpus.count} + count, std::numeric_limits<int32_t>::max()));
  }
  if (is_mixed) gpus.type.clear();
  return gpus;
}

}  // namespace muster::engine::slurm
