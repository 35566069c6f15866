#include "cli/log_cursor.h"

namespace muster::cli {

LogCursor::Count& LogCursor::count_of(const job::LogRecord& record) {
  const bool again = last_ != nullptr && last_->first == std::tie(record.attempt, record.task,
                                                                  record.rank, record.stream);
  if (!again) {
    last_ = &*counts_.try_emplace({record.attempt, record.task, record.rank, record.stream}).first;
  }
  return last_->second;
}

const job::LogRecord* LogCursor::unseen(const job::LogRecord& record) {
  Count& count = count_of(record);
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
  last_ = nullptr;
  std::erase_if(counts_, [](const auto& entry) { return entry.second.again == 0; });
  for (auto& [source, count] : counts_) count.seen = count.again;
}

void LogCursor::restart() {
  for (auto& [source, count] : counts_) count.again = count.seen;
}

}  // namespace muster::cli
