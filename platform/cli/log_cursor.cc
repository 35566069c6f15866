#include "cli/log_cursor.h"

namespace muster::cli {

const job::LogRecord* LogCursor::unseen(const job::LogRecord& record) {
  Count& count = counts_[{record.attempt, record.task, record.rank, record.stream}];
  if (count.again == 0) {
    count.seen += job::printed_size(record);
    return &record;
  }
  rest_ = record;
  if (!job::drop_seen(rest_, count.again)) return nullptr;
  count.seen += job::printed_size(rest_);
  return &rest_;
}

// What was seen before a restart may reach beyond the first place after it.
void LogCursor::reach(const std::string& place) {
  place_ = place;
  std::erase_if(counts_, [](const auto& entry) { return entry.second.again == 0; });
  for (auto& [source, count] : counts_) count.seen = count.again;
}

void LogCursor::restart() {
  for (auto& [source, count] : counts_) count.again = count.seen;
}

}  // namespace muster::cli
