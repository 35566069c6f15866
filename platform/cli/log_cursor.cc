#include "cli/log_cursor.h"

namespace muster::cli {

bool LogCursor::advance(const job::LogRecord& record) {
  if (!first_ || record.time < *first_) first_ = record.time;
  const auto [found, added] = places_.try_emplace(record.task, Place{.last = record.time});
  Place& place = found->second;
  if (place.replaying) {
    if (record.time < place.last) return false;
    if (record.time == place.last && place.to_skip-- > 0) return false;
    place.replaying = false;
  }
  // Not only forwards: a clock that is set back must not cost lines.
  if (record.time != place.last) place = {.last = record.time};
  ++place.at_last;
  return true;
}

job::LogQuery LogCursor::resume(job::LogQuery query) {
  for (auto& [task, place] : places_) {
    place.replaying = true;
    place.to_skip = place.at_last;
  }
  // "The last N lines that exist now" are others now. What was shown begins at the first record.
  if (query.tail && first_) {
    query.tail.reset();
    query.since = first_;
  }
  return query;
}

}  // namespace muster::cli
