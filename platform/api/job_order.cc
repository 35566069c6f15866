// The order of a listing: its names, the place of each job in it, and the cursor of the next page.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job_query.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::api {

namespace {

/// Separates the parts of a cursor, none of which contains it.
constexpr char kSeparator = '\n';

constexpr std::array<std::pair<JobColumn, std::string_view>, 11> kColumns{
    {{JobColumn::kSubmitted, "submitted"},
     {JobColumn::kStarted, "started"},
     {JobColumn::kEnded, "ended"},
     {JobColumn::kDuration, "duration"},
     {JobColumn::kName, "name"},
     {JobColumn::kProject, "project"},
     {JobColumn::kOwner, "owner"},
     {JobColumn::kKind, "kind"},
     {JobColumn::kPhase, "phase"},
     {JobColumn::kPriority, "priority"},
     {JobColumn::kGpus, "gpus"}}};

/// Base64 for URLs, which needs no escapes (RFC 4648, section 5).
std::string url_base64(std::string_view bytes) {
  std::string text = base::to_base64_for_urls(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::optional<std::string> from_url_base64(std::string_view text) {
  if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '-', '+');
  std::replace(plain.begin(), plain.end(), '_', '/');
  while (plain.size() % 4 != 0) plain += '=';
  return base::from_base64(plain);
}

std::optional<int64_t> number_of(const std::optional<base::Time>& time) {
  if (!time) return std::nullopt;
  return time->time_since_epoch().count();
}

/// Nothing: it has not started.
std::optional<int64_t> run_time_of(const JobFacts& job, base::Time now) {
  if (!job.started) return std::nullopt;
  const base::Time until = job.ended.value_or(std::max(now, *job.started));
  return (until - *job.started).count();
}

}  // namespace

std::string order_name(JobOrder order) {
  for (const auto& [column, name] : kColumns) {
    if (column == order.by) return (order.descending ? "-" : "") + std::string(name);
  }
  return "";
}

std::optional<JobOrder> order_of(std::string_view name) {
  if (name == "age") return JobOrder::kNewestFirst;
  if (name == "-age") return JobOrder::kOldestFirst;
  const bool descending = name.starts_with('-');
  if (descending) name.remove_prefix(1);
  for (const auto& [column, known] : kColumns) {
    if (known == name) return JobOrder{.by = column, .descending = descending};
  }
  return std::nullopt;
}

std::vector<std::string> order_names() {
  std::vector<std::string> names;
  for (const auto& [column, name] : kColumns) names.emplace_back(name);
  return names;
}

JobPlaceView place_of(JobOrder order, const JobFacts& job, base::Time now) {
  JobPlaceView place{.submitted = job.submitted, .id = job.id};
  const auto take = [&](std::optional<int64_t> number) {
    place.is_absent = !number;
    place.number = number.value_or(0);
  };
  switch (order.by) {
    case JobColumn::kSubmitted:
      break;  // it is there for every order
    case JobColumn::kStarted:
      take(number_of(job.started));
      break;
    case JobColumn::kEnded:
      take(number_of(job.ended));
      break;
    case JobColumn::kDuration:
      take(run_time_of(job, now));
      place.now = now;
      break;
    case JobColumn::kName:
      place.text = job.name;
      place.project = job.project;
      break;
    case JobColumn::kProject:
      place.text = job.project;
      break;
    case JobColumn::kOwner:
      place.text = job.owner;
      break;
    case JobColumn::kKind:
      place.text = job::to_string(job.kind);
      break;
    case JobColumn::kPhase:
      place.number = static_cast<int>(job.phase);
      break;
    case JobColumn::kPriority:
      place.number = job.priority();
      break;
    case JobColumn::kGpus:
      place.number = job.gpu_milli();
      break;
  }
  return place;
}

JobPlace copy_of(const JobPlaceView& place) {
  return {.is_absent = place.is_absent,
          .number = place.number,
          .text = std::string(place.text),
          .project = std::string(place.project),
          .submitted = place.submitted,
          .id = std::string(place.id),
          .now = place.now};
}

namespace {

template <class Left, class Right>
bool is_before(JobOrder order, const Left& left, const Right& right) {
  if (left.is_absent != right.is_absent) return right.is_absent;
  if (left.number != right.number) return (left.number < right.number) != order.descending;
  if (left.text != right.text) return (left.text < right.text) != order.descending;
  if (left.project != right.project) return (left.project < right.project) != order.descending;
  if (left.submitted != right.submitted) {
    const bool oldest_first = order == JobOrder::kOldestFirst;
    return oldest_first ? left.submitted < right.submitted : left.submitted > right.submitted;
  }
  return left.id < right.id;
}

}  // namespace

bool comes_before(JobOrder order, const JobPlace& left, const JobPlace& right) {
  return is_before(order, left, right);
}

bool comes_before(JobOrder order, const JobPlace& left, const JobPlaceView& right) {
  return is_before(order, left, right);
}

bool comes_before(JobOrder order, const JobPlaceView& left, const JobPlace& right) {
  return is_before(order, left, right);
}

std::string cursor_text(JobOrder order, const JobPlace& place) {
  const auto count = [](base::Time time) {
    return std::to_string(time.time_since_epoch().count());
  };
  const std::array<std::string, 8> parts{order_name(order),
                                         place.is_absent ? "-" : "+",
                                         std::to_string(place.number),
                                         place.text,
                                         place.project,
                                         count(place.submitted),
                                         place.id,
                                         count(place.now)};
  return url_base64(base::joined(parts, std::string_view(&kSeparator, 1)));
}

std::optional<JobPlace> place_of_cursor(JobOrder order, std::string_view cursor) {
  const auto text = from_url_base64(cursor);
  if (!text) return std::nullopt;
  const std::vector<std::string> parts = base::split(*text, kSeparator);
  if (parts.size() != 8 || parts[0] != order_name(order)) return std::nullopt;
  const auto number = base::number_of<int64_t>(parts[2]);
  const auto submitted = base::number_of<int64_t>(parts[5]);
  const auto now = base::number_of<int64_t>(parts[7]);
  if (!number || !submitted || !now || (parts[1] != "-" && parts[1] != "+")) return std::nullopt;
  const auto time = [](int64_t count) { return base::Time(std::chrono::nanoseconds(count)); };
  return JobPlace{.is_absent = parts[1] == "-",
                  .number = *number,
                  .text = parts[3],
                  .project = parts[4],
                  .submitted = time(*submitted),
                  .id = parts[6],
                  .now = time(*now)};
}

}  // namespace muster::api
