#include "job/log_batch.h"

namespace muster::job {

size_t LogBatch::index_of(const Source& source) {
  // Whoever prints much is met again soon.
  if (!runs_.empty() && sources_[runs_.back().source] == source) return runs_.back().source;
  for (size_t i = sources_.size(); i-- > 0;) {
    if (sources_[i] == source) return i;
  }
  sources_.push_back(source);
  return sources_.size() - 1;
}

void LogBatch::add(const Source& source, base::Time time, std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t index = index_of(source);
  const bool goes_on = !runs_.empty() && runs_.back().source == index &&
                       runs_.back().time == time && bytes_.back() == '\n' && bytes.back() == '\n';
  bytes_ += bytes;
  if (goes_on) {
    runs_.back().size += bytes.size();
  } else {
    runs_.push_back({.source = index, .time = time, .size = bytes.size()});
  }
}

void LogBatch::clear() {
  sources_.clear();
  runs_.clear();
  bytes_.clear();
}

LogRecord record_of(const LogSource& source) {
  return {.time = {},
          .task = source.task,
          .attempt = source.attempt,
          .host = source.host,
          .rank = source.rank,
          .stream = source.stream,
          .text = {}};
}

std::vector<LogRecord> records_of(const LogBatch& batch) {
  std::vector<LogRecord> records;
  std::string_view rest = batch.bytes();
  for (const LogBatch::Run& run : batch.runs()) {
    LogRecord record = record_of(*batch.sources()[run.source]);
    record.time = run.time;
    for_each_line(rest.substr(0, run.size), record, [&](const LogRecord& line) {
      records.push_back(line);
      return true;
    });
    rest.remove_prefix(run.size);
  }
  return records;
}

}  // namespace muster::job
